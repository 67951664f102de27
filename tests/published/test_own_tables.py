"""Published runs of publishers that no constant was fitted on when these figures were first taken."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from stallwise.planner.scoring import Row, read_rows, summary
from stallwise.planner.validation import kind_named

HERE = Path(__file__).parent


def figures(kind: str, rows: list[Row]) -> dict[str, Any]:
    module = kind_named(kind)
    scored = module.validate(rows, 0)
    return summary(kind, len(rows), scored) | module.details(rows, scored)


def test_every_row_has_its_source() -> None:
    for name in ("training_runs.csv", "memory_runs.csv"):
        assert all(row["citation"] and row["source"] for row in read_rows(HERE / name))


FIRST_ROUND = 228  # rows of data centres; then GeForce and workstation cards, untuned scripts, JAX experts
MOST_PCT = (
    (slice(0, FIRST_ROUND, 2), {"dense-bf16": 18, "dense-fp8": 15, "moe": 22, "lora": 20}),
    (slice(FIRST_ROUND, None, 2), {"dense-bf16": 36, "dense-fp8": 46, "moe": 44, "lora": 44}),
)


@pytest.mark.parametrize("which, most", MOST_PCT)
def test_step_times_by_family(which: slice, most: dict[str, float]) -> None:
    found = figures("training", read_rows(HERE / "training_runs.csv")[which])
    assert found["coverage_share"] == 1.0
    assert found["inside_interval_share"] >= 0.75
    for family, part in found["by_family"].items():
        assert part["mean_abs_pct"] <= most[family], family


def test_memory_of_runs_that_ran() -> None:
    found = figures("memory", read_rows(HERE / "memory_runs.csv"))
    assert found["median_abs_pct"] <= 13
    assert found["inside_interval_share"] >= 0.80
    assert found["false_does_not_fit_share"] <= 0.03


@pytest.mark.parametrize("text, bytes_a_weight", [("QLoRA rank 64", 0.5), ("LoRA rank 8", 2.0)])
def test_frozen_weights_are_kept_as_the_words_say(text: str, bytes_a_weight: float) -> None:
    from stallwise.planner.runs import run_of

    row = {"model": "llama-2-7b", "gpu": "A100-80GB", "num_gpus": "1", "tp": "1", "pp": "1", "seq": "2048",
           "micro_batch": "1", "global_batch": "8", "recompute": "full", "precision": "bf16", "notes": text}  # fmt: skip
    run = run_of(row)
    assert run.recipe.frozen_bytes == pytest.approx(bytes_a_weight, rel=0.05)
    assert run.family == "lora"
    assert run.recipe.lora_rank == (64 if "64" in text else 8)
