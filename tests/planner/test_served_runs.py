"""Rows of serving tables as deployments, and the accuracy that the published ones are predicted with."""

from __future__ import annotations

import pytest

from stallwise.planner.scoring import read_rows, summary
from stallwise.planner.served_runs import served_run
from stallwise.planner.validation import inference, layers
from tests.shared_data import shared

ROW = {
    "model": "deepseek-ai/DeepSeek-R1", "gpu": "b200_sxm", "tp": "8", "pp": "1", "dp_attn": "1", "ep": "1",
    "mode": "agg", "engine": "sglang", "precision": "fp8", "isl": "1024", "osl": "1024", "batch_or_concurrency": "16",
    "notes": "gemm=fp8 moe=fp8 moe_tp=8",
}  # fmt: skip


@pytest.mark.parametrize(
    ("given", "axes", "users"),
    [
        ({}, (8, 1, 1), 16),
        ({"ep": "8", "notes": "moe_tp=1"}, (8, 1, 8), 16),
        ({"tp": "64", "ep": "8", "notes": "moe_tp=8"}, (8, 1, 8), 16),  # TP8 and EP8 on the same eight GPUs
        ({"tp": "1", "dp_attn": "64", "ep": "8", "notes": "moe_tp=8", "batch_or_concurrency": "2"}, (1, 8, 8), 128),
        ({"tp": "1", "dp_attn": "8", "ep": "8", "notes": "moe_tp=1"}, (1, 8, 8), 128),
        ({"tp": "4", "dp_attn": "4", "ep": "16", "notes": "moe_tp=1"}, (1, 4, 4), 64),
    ],
)
def test_axes_that_share_gpus_are_not_multiplied(
    given: dict[str, str], axes: tuple[int, int, int], users: float
) -> None:
    run = served_run({**ROW, **given})
    assert (run.deployment.tp, run.deployment.dp, run.deployment.ep) == axes
    assert run.concurrency == users


def test_attention_that_heads_cannot_be_cut_for_is_replicated() -> None:
    run = served_run({**ROW, "tp": "36", "notes": "moe_tp=36"})
    assert (run.deployment.tp, run.deployment.dp, run.deployment.ep) == (1, 36, 36)


def test_predictions_do_not_look_at_results() -> None:
    rows = [{**ROW, "row_id": "a", "tpot_ms": "10", "ttft_ms": "200"}]
    other = [{**ROW, "row_id": "a", "tpot_ms": "99", "ttft_ms": "9"}]
    assert [s.predicted for s in inference.validate(rows, 0)] == [s.predicted for s in inference.validate(other, 0)]


def test_rubbish_is_a_note_not_a_crash() -> None:
    for change in ({"model": "nothing"}, {"gpu": "x"}, {"isl": ""}, {"tp": "7"}, {"precision": "fp3"}, {"ep": "nan"}):
        for scored in inference.validate([{**ROW, "tpot_ms": "10", "ttft_ms": "1", **change}], 0):
            assert scored.predicted is not None or scored.note


@pytest.mark.shared
def test_published_runs_are_predicted_without_having_seen_their_group() -> None:
    rows = [r for r in read_rows(shared("data", "published", "inference.csv")) if r["mode"] == "agg"]
    both = [r for r in rows if r["ttft_ms"] and r["tpot_ms"] and r["isl"]]
    figures = inference.details(both, inference.validate(both, 0))["by_metric"]
    assert figures["tpot_s"]["predicted"] > 0.9 * len(both)
    assert figures["tpot_s"]["median_abs_pct"] < 15
    assert figures["ttft_s"]["median_abs_pct"] < 30
    assert 0.7 < figures["tpot_s"]["inside_interval_share"] < 0.9


@pytest.mark.shared
def test_measured_layers_are_predicted() -> None:
    rows = read_rows(shared("data", "h200", "truth", "inference_layers.csv"))
    assert summary("layers", len(rows), layers.validate(rows, 0))["median_abs_pct"] < 8


MACHINE = {
    "model": "Llama-2-70B-chat", "gpu": "H100-SXM", "num_gpus": "8", "tp": "", "engine": "tensorrt-llm", "engine_version": "",
    "osl": "294", "source": "MLPerf Inference v4.1 closed", "notes": "dataset OpenORCA, mean about 294 in / 294 out",
}  # fmt: skip


def test_a_machine_whose_layout_is_not_stated_is_cut_as_makes_most_tokens() -> None:
    run = served_run({**MACHINE, "load": "all queued"})
    assert run.deployment.ranks * run.replicas == 8 and run.isl == 294
    assert run.deployment.weights == "fp8" and "layout is not stated" in run.assumed[0]
    whole = inference.validate(
        [{**MACHINE, "row_id": "a", "load": "all queued", "metric_output_tok_s_total": "24000"}], 0
    )
    assert whole[0].predicted == pytest.approx(24_000, rel=0.15)  # of eight H100, as submitted


def test_a_rate_is_a_load() -> None:
    row = {**MACHINE, "row_id": "a", "load": "poisson", "tpot_ms": "40", "ttft_ms": "200"}
    slow, fast = (inference.validate([{**row, "request_rate": rate}], 0)[0].predicted for rate in ("4", "40"))
    assert slow is not None and fast is not None and 0 < slow < fast
    beyond = {s.metric: s for s in inference.validate([{**row, "request_rate": "4000"}], 0)}
    assert (
        beyond["tpot_s"].predicted
        and beyond["ttft_s"].predicted is None
        and "length of the test" in beyond["ttft_s"].note
    )


def test_the_name_of_a_checkpoint_says_its_format() -> None:
    assert (
        served_run(
            {**MACHINE, "model": "nvidia/Llama-3.1-8B-Instruct-FP8", "source": "", "tp": "1", "isl": "10"}
        ).deployment.weights
        == "fp8"
    )
