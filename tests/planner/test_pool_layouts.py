"""Runs of separate pools: what is stated in words is heard, what is not stated is a mixture that widens the answer."""

from __future__ import annotations

import math

import numpy as np
import pytest

from stallwise.physics.costs.mixture import Mixture, single
from stallwise.physics.costs.pools import Pair, Pool, pools, pools_together
from stallwise.planner.pool_layouts import layouts
from stallwise.planner.served_pools import answers, pooled_run
from stallwise.planner.served_runs import served_run
from stallwise.planner.stated_words import stated
from stallwise.planner.validation import inference

OPEN = {
    "row_id": "dsr1_gb200_8192x1024_c256", "model": "deepseek-r1", "gpu": "gb200", "mode": "disagg", "engine": "trtllm",
    "precision": "fp4", "isl": "8192", "osl": "1024", "load": "closed loop",
    "prefill_cfg": "x bs tp4 pp1 dp1 moe_tp1 moe_ep4", "decode_cfg": "x bs tp8 pp1 dp1 moe_tp2 moe_ep4",
    "tpot_ms": "12", "ttft_ms": "900",
}  # fmt: skip
TOLD = {
    **OPEN,
    "prefill_cfg": "3x bs1 tp1 pp1 dp4 moe_tp1 moe_ep4",
    "decode_cfg": "4x bs64 tp8 pp1 dp1 moe_tp1 moe_ep8",
}


@pytest.mark.parametrize(
    ("words", "quantity", "number"),
    [
        ("origin; silicon_concurrency=64; measured=2026-01-02", "concurrency", 64),
        ("llama_70b_h100_c128_tp8", "concurrency", 128),
        ("max-concurrency: 32", "concurrency", 32),
        ("48 users, 8 GPUs", "concurrency", 48),
        ("48 users, 8 GPUs", "gpus", 8),
        ("layout 2p6d", "prefill_workers", 2),
        ("layout 2p6d", "decode_workers", 6),
        ("4 prefill workers, 2 decode workers", "decode_workers", 2),
        ("ctx1_gen4_tp8", "decode_workers", 4),
        ("concurrency 4 and then concurrency 8", "concurrency", None),  # which of them was meant is not said
        ("c3po on v2.c4", "concurrency", None),
    ],
)
def test_counts_are_heard_in_words(words: str, quantity: str, number: float | None) -> None:
    assert stated({"citation": words}, quantity) == number


def test_a_table_s_batch_of_one_replica_and_its_concurrency_give_the_replicas() -> None:
    row = {**OPEN, "row_id": "dsr1_c224", "mode": "agg", "tp": "4", "ep": "4", "batch_or_concurrency": "56"}
    run = served_run(row)
    assert (run.deployment.tp, run.deployment.dp, run.concurrency) == (1, 4, 224)


def test_what_is_not_stated_widens_and_is_named() -> None:
    told, open_ = (inference.validate([row], 0) for row in (TOLD, OPEN))
    for known, unknown in zip(told, open_, strict=True):
        assert unknown.metric == known.metric.replace("disagg_", "disagg_open_")
        assert unknown.high is not None and unknown.low is not None
        assert unknown.high / unknown.low > 1.1 * known.high / known.low
        assert "number of decode workers not stated" in unknown.note and "not stated: any" not in known.note


def test_stating_the_pools_narrows_the_mixture() -> None:
    def width(**said: str) -> float:
        tpot = answers(pooled_run({**OPEN, **said}), inference.engine_for)["tpot_s"]
        return math.log(tpot.quantile(0.9) / tpot.quantile(0.1))

    assert width(notes="3p6d") < width()
    run = pooled_run({**OPEN, "notes": "on 36 GPUs"})
    for x in layouts(run.prefill, run.decode, run.users, run.gpus):
        assert set(x.prefill_workers * 4 + x.decode_workers * 8) == {36}


def test_a_wave_waits_at_the_prompts_pool_and_more_prefill_workers_shorten_it() -> None:
    run = pooled_run(TOLD)
    engine = inference.engine_for(run.decode.cuts[0])

    def at(users: float, workers: float, pattern: str = "loop") -> float:
        return float(pools(Pool(engine, workers), Pool(engine, 4), 8192, 1024, users, pattern).ttft_s)

    assert at(256, 8) > at(16, 8)
    assert at(256, 16) < at(256, 8)
    assert at(256, 8, "poisson") < at(256, 8) < at(256, 8, "waves")


def test_layouts_solved_together_are_those_solved_alone() -> None:
    run = pooled_run(TOLD)
    p, d = inference.engine_for(run.prefill.cuts[0]), inference.engine_for(run.decode.cuts[0])
    counts = np.array([(1.0, 1.0), (2.0, 4.0), (8.0, 2.0)]).T
    both = pools_together([Pair(Pool(p, counts[0]), Pool(d, counts[1]))], 4096, 512, 200)
    for i, (prompts, tokens) in enumerate(counts.T):
        alone = pools(Pool(p, prompts), Pool(d, tokens), 4096, 512, 200)
        assert both.ttft_s[i] == pytest.approx(alone.ttft_s, rel=1e-6)
        assert both.tpot_s[i] == pytest.approx(alone.tpot_s, rel=1e-6)
        assert alone.output_token_per_s == pytest.approx(200 * 512 / (alone.ttft_s + 511 * alone.tpot_s), rel=1e-6)


def test_a_mixture_s_median_is_not_moved_by_a_rare_delay_but_its_interval_is() -> None:
    warm = single(0.2)
    cold = warm.or_later((2.0, 6.0, 18.0), 0.2)
    assert cold.quantile(0.5) == pytest.approx(0.2)
    assert cold.interval(0.8, (0.8, 1.3))[1] > 10 * warm.interval(0.8, (0.8, 1.3))[1]
    halves = Mixture(np.array([1.0, 3.0, 2.0]), np.array([1.0, 1.0, 1.0]))
    assert halves.quantile(0.5) == 2.0


def test_pools_that_say_nothing_are_a_note() -> None:
    for change in ({"prefill_cfg": ""}, {"decode_cfg": "eight of them"}, {"row_id": "no load", "citation": ""}):
        for scored in inference.validate([{**OPEN, **change}], 0):
            assert scored.predicted is None and "stated" in scored.note
