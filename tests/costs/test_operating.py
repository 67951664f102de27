"""An operating point's three figures never contradict each other, and every input moves what it should."""

from __future__ import annotations

import random

import pytest

from stallwise.errors import BadRequest
from stallwise.physics.costs.closed_loop import Load, operating
from stallwise.physics.costs.inference import Engine
from stallwise.physics.costs.kv_room import kv_room
from stallwise.physics.costs.pools import Pool, pools
from stallwise.physics.costs.serving_constants import constants, earliness, release_of, spread
from stallwise.physics.costs.speculation import Speculation
from stallwise.physics.specs.deployment import Deployment
from stallwise.physics.specs.hardware import gpu
from stallwise.physics.specs.model import find_model

MODELS = ("llama-3.1-8b", "llama-3.1-70b", "mixtral-8x7b", "deepseek-v3", "qwen3-32b", "gpt-oss-20b")
CARDS = ("h100-sxm", "h200", "b200", "a100-sxm-80gb", "mi300x")


def served(model: str = "llama-3.1-70b", card: str = "h100-sxm", **what: object) -> Engine:
    return Engine(Deployment(find_model(model), gpu(card), **what))  # type: ignore[arg-type]


def points(count: int) -> list[tuple[Engine, Load]]:
    rng, found = random.Random(7), []
    while len(found) < count:
        engine = served(
            rng.choice(MODELS), rng.choice(CARDS), tp=rng.choice((1, 2, 4, 8)), weights=rng.choice(("bf16", "fp8")),
            engine=rng.choice(("vllm", "sglang", "trtllm")), engine_version=rng.choice(("", "0.5.1", "1.2.0")),
        )  # fmt: skip
        if not kv_room(engine.deployment).fits:
            continue
        load = Load(
            round(10 ** rng.uniform(1.5, 5)), round(10 ** rng.uniform(0.5, 4)), round(10 ** rng.uniform(0, 3.5)),
            rng.choice(("", "loop", "waves", "poisson")), max_seqs=rng.choice((None, 16, 256)),
            hit_share=rng.choice((0.0, 0.6)), chunked=rng.random() < 0.5,
            speculation=rng.choice((Speculation(), Speculation(3, 0.7), None)),
        )  # fmt: skip
        found.append((engine, load))
    return found


def test_throughput_is_what_its_own_latencies_imply_at_a_thousand_points() -> None:
    for engine, load in points(1000):
        at = operating(engine, load)
        implied = load.concurrency * load.osl / (at.ttft_s + (load.osl - 1) * at.tpot_s)
        assert at.output_token_per_s == pytest.approx(implied, rel=0.05)
        assert 0 < at.tpot_low_s < at.tpot_s < at.tpot_high_s and at.running + at.waiting >= load.concurrency - 1e-9


def test_waves_spare_the_tokens_and_delay_the_first_one() -> None:
    engine = served(tp=8, weights="fp8", engine_version="0.16.0")
    loop, waves = (operating(engine, Load(2000, 300, 64, pattern)) for pattern in ("loop", "waves"))
    assert waves.tpot_s < loop.tpot_s and waves.ttft_s > 1.5 * loop.ttft_s


def test_a_cap_below_the_load_makes_requests_wait() -> None:
    engine = served(tp=8, weights="fp8")
    free, capped = operating(engine, Load(1000, 300, 128)), operating(engine, Load(1000, 300, 128, max_seqs=32))
    assert capped.running == 32 and capped.waiting == 96 and capped.tpot_s < free.tpot_s and capped.ttft_s > free.ttft_s


def test_cached_prompts_come_sooner_and_drafts_shorten_tokens_at_small_batches() -> None:
    engine = served(tp=8, weights="fp8")
    plain = operating(engine, Load(4000, 300, 16))
    assert operating(engine, Load(4000, 300, 16, hit_share=0.8)).ttft_s < 0.8 * plain.ttft_s
    assert operating(engine, Load(4000, 300, 16, speculation=Speculation(3, 0.8))).tpot_s < 0.7 * plain.tpot_s


def test_what_is_not_stated_is_named_and_widens_the_interval() -> None:
    told = operating(served(engine_version="0.16.0", tp=8), Load(1000, 300, 16))
    untold = operating(served(tp=8), Load(1000, 300, 16, "", speculation=None))
    assert not told.assumed and len(untold.assumed) == 3
    assert untold.ttft_high_s / untold.ttft_s >= told.ttft_high_s / told.ttft_s
    assert spread("tpot", 0.9)[1] > spread("tpot", 0.8)[1]


def test_releases_are_numbers_and_old_ones_keep_the_gpu_waiting() -> None:
    assert release_of("v0.5.9.post1") == (0, 5, 9) and release_of("nightly-dev") is None
    assert (
        earliness("sglang", "0.5.4") == 1 and earliness("sglang", "0.5.6") == 0.75 and earliness("sglang", "0.5.9") == 0
    )
    assert earliness("vllm", "0.18.0") == -0.5
    assert constants("vllm", "", "0.5.3").sequence_s > 3 * constants("vllm", "", "0.11.0").sequence_s


def test_another_vendor_reaches_less_of_its_peaks() -> None:
    amd, nvidia = constants("vllm", "", "", ("AMD", "cdna3")), constants("vllm", "", "", ("NVIDIA", "hopper"))
    assert amd.matmul_share < 0.7 * nvidia.matmul_share and amd.weight_read_share < nvidia.weight_read_share


def test_coarse_experts_fill_their_tiles_and_fine_ones_do_not() -> None:
    coarse, fine = served("mixtral-8x7b", tp=2).work, served("qwen3-30b-a3b", tp=4).work
    assert coarse.expert_tile_share > 0.85 > 0.75 > fine.expert_tile_share


def test_pools_share_the_rate_and_a_small_prefill_pool_makes_the_first_token_wait() -> None:
    worker = served(tp=4, weights="fp8")
    one, eight = (pools(Pool(worker, n), Pool(worker, 2), 8000, 300, 128) for n in (1, 8))
    assert one.ttft_s > 2 * eight.ttft_s and one.prefill_load > eight.prefill_load
    for at in (one, eight):
        assert at.output_token_per_s == pytest.approx(128 * 300 / (at.ttft_s + 299 * at.tpot_s), rel=1e-6)


def test_a_load_that_cannot_be_says_why() -> None:
    with pytest.raises(BadRequest):
        Load(1000, 300, 8, "sometimes")
    with pytest.raises(BadRequest):
        Load(0, 300, 8)
