"""Identities that a person can check by hand, and the shape of the roofline."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stallwise.errors import BadRequest
from stallwise.physics.costs.closed_loop import closed_loop
from stallwise.physics.costs.inference import Engine, larger
from stallwise.physics.costs.kv_room import compute_bound_batch, kv_room
from stallwise.physics.costs.rank_work import rank_work, weight_bytes_per_rank
from stallwise.physics.costs.serving_constants import FIELDS, constants, fold_of, group_of
from stallwise.physics.specs.deployment import Deployment
from stallwise.physics.specs.hardware import gpu
from stallwise.physics.specs.model import find_model


def served(model: str = "llama-3-8b", card: str = "h100-sxm", **what: object) -> Deployment:
    return Deployment(find_model(model), gpu(card), **what)  # type: ignore[arg-type]


def test_llama_3_8b_in_16_bit_has_16_gb_of_weights_and_a_gb_of_kv_per_8k_request() -> None:
    model = find_model("llama-3-8b")
    assert weight_bytes_per_rank(served()) == pytest.approx(16.06e9, rel=0.01)
    assert model.kv_bytes(8192) == pytest.approx(1.07e9, rel=0.01)
    assert rank_work(served()).kv_bytes_per_token == 131_072


def test_eight_requests_of_8k_read_half_as_much_kv_as_weights() -> None:
    engine = Engine(served())
    parts = engine.parts(8, 8192)
    assert 8 * engine.kv_read_bytes(8192) == pytest.approx(8.59e9, rel=0.01)
    assert parts.weights_s > parts.kv_s > 0.4 * parts.weights_s


def test_decode_at_batch_1_is_bytes_over_bandwidth() -> None:
    engine = Engine(served())
    floor_s = 15.0e9 / 3.352e12  # weights without the input table, at the data sheet's rate
    assert floor_s < engine.decode_s(1, 100) < 2 * floor_s


def test_prefill_is_bound_by_arithmetic() -> None:
    parts = Engine(served()).parts(0, 0, prefill_tokens=4096, prefill_pairs=4096**2 / 2)
    assert parts.arithmetic_s > 3 * parts.weights_s


def test_the_batch_at_which_decode_turns_compute_bound_is_the_ridge() -> None:
    assert compute_bound_batch(served()) == pytest.approx(gpu("h100-sxm").ridge("bf16"), rel=0.05)


def test_latent_attention_does_not_shrink_with_tp_and_grouped_heads_are_copied_beyond_their_number() -> None:
    whole, cut = served("deepseek-v3", "h200", tp=1, weights="fp8"), served("deepseek-v3", "h200", tp=8, weights="fp8")
    assert rank_work(whole).kv_bytes_per_token == rank_work(cut).kv_bytes_per_token
    four, eight = served("qwen3-235b-a22b", tp=4, weights="fp8"), served("qwen3-235b-a22b", tp=8, weights="fp8")
    assert rank_work(four).kv_bytes_per_token == rank_work(eight).kv_bytes_per_token


def test_a_window_bounds_what_decode_reads() -> None:
    engine = Engine(served("gpt-oss-20b"))
    every_layer = 100_000 * engine.deployment.model.kv_bytes_per_token()
    assert engine.kv_read_bytes(100_000) < 0.51 * every_layer  # half of the layers stop at their window


def test_a_few_tokens_touch_a_few_experts() -> None:
    engine = Engine(served("deepseek-v3", "h200", tp=8, weights="fp8"))
    assert engine.parts(1, 10).weights_s < 0.35 * engine.parts(256, 10).weights_s


def test_fp8_halves_the_weights_and_fp8_kv_halves_the_cache() -> None:
    sixteen, eight = served("llama-3.1-70b", tp=8), served("llama-3.1-70b", tp=8, weights="fp8")
    assert weight_bytes_per_rank(eight) == pytest.approx(weight_bytes_per_rank(sixteen) / 2, rel=0.05)
    assert kv_room(eight).bytes_per_token * 2 == kv_room(sixteen).bytes_per_token


def test_memory_by_the_byte_adds_up() -> None:
    room = kv_room(served("llama-3.1-70b", tp=8, weights="fp8"))
    assert room.weight_bytes + room.reserved_bytes + room.kv_bytes == pytest.approx(room.usable_bytes)
    assert not kv_room(served("llama-3.1-405b", tp=2)).fits


@given(st.floats(1e-9, 1e3), st.floats(1e-9, 1e3))
def test_the_rounded_maximum_lies_between_the_larger_and_the_sum(a: float, b: float) -> None:
    assert max(a, b) <= larger(a, b) * (1 + 1e-12) and larger(a, b) <= (a + b) * (1 + 1e-12)


@given(st.integers(1, 512), st.integers(1, 100_000))
def test_an_iteration_grows_with_batch_and_context(batch: int, context: int) -> None:
    engine = Engine(served("llama-3.1-70b", tp=8, weights="fp8"))
    here = engine.decode_s(batch, context)
    assert here < engine.decode_s(batch + 1, context) and here < engine.decode_s(batch, context + 64)


@given(st.integers(1, 2048))
def test_more_users_never_get_their_tokens_sooner(users: int) -> None:
    engine = Engine(served("llama-3.1-70b", tp=8, weights="fp8"))
    few, more = closed_loop(engine, 2000, 300, users), closed_loop(engine, 2000, 300, users + 1)
    assert more.tpot_s >= few.tpot_s and more.ttft_s >= few.ttft_s
    assert more.running + more.waiting == pytest.approx(users + 1)
    assert few.tpot_low_s < few.tpot_s < few.tpot_high_s


def test_impossible_layouts_name_the_nearest_possible_one() -> None:
    with pytest.raises(BadRequest) as caught:
        served(tp=12)
    assert "the nearest that does is" in caught.value.hint
    with pytest.raises(BadRequest):
        served(ep=2)


def test_constants_are_complete_for_every_engine_and_every_group_left_out() -> None:
    groups = ["", *(group_of(f"model-{i}", "h200", "vllm") for i in range(60))]
    assert len({fold_of(g) for g in groups[1:]}) == 12
    for engine in ("vllm", "sglang", "trtllm", "torch"):
        for group in groups:
            k = constants(engine, group)
            assert all(getattr(k, name) >= 0 for name in FIELDS)


def test_an_indexer_reads_short_keys_of_all_tokens_and_latents_of_few() -> None:
    plain = find_model("deepseek-v3")
    assert plain.mla is not None
    sparse = replace(plain, mla=replace(plain.mla, index_topk=2048, index_dim=128))
    card = gpu("b200")
    dense, picked = (Engine(Deployment(m, card, tp=8, weights="fp8", engine="sglang")) for m in (plain, sparse))
    assert picked.kv_read_bytes(64_000) < dense.kv_read_bytes(64_000) / 3
    assert picked.decode_s(1, 512) > dense.decode_s(1, 512)  # short contexts only pay for the picking
    assert picked.decode_s(64, 64_000) < dense.decode_s(64, 64_000)


def test_only_stored_four_bit_leaves_attention_in_sixteen() -> None:
    model, card = find_model("deepseek-v3"), gpu("b200")
    assert Deployment(model, card, tp=8, weights="int4").attention_dtype == "bf16"
    assert Deployment(model, card, tp=8, weights="nvfp4").attention_dtype == "nvfp4"


def test_weights_stored_in_four_bit_are_multiplied_in_sixteen() -> None:
    four, sixteen = (rank_work(served("llama-3.1-70b", tp=4, weights=w)).peak_s_per_token for w in ("int4", "bf16"))
    assert four == sixteen
