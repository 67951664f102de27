"""The planner against measured tables, each source predicted by constants that never saw it."""

from __future__ import annotations

import os
from typing import Any

import pytest

from stallwise.planner.scoring import read_rows, summary
from stallwise.planner.validation import kind_named
from tests.shared_data import shared


def figures(kind: str, *path: str, every: int = 1) -> dict[str, Any]:
    rows = read_rows(shared(*path))[::every]
    module = kind_named(kind)
    scored = module.validate(rows, 0)
    found = summary(kind, len(rows), scored)
    return found | (module.details(rows, scored) if hasattr(module, "details") else {})


@pytest.mark.shared
@pytest.mark.skipif(not os.environ.get("STALLWISE_FULL"), reason="takes most of a minute: set STALLWISE_FULL=1")
def test_training_runs_of_sources_left_out() -> None:
    # A third of the rows gives the figures of all within half a point, in a third of the time.
    found = figures("training", "data", "published", "training.csv", every=3)
    assert found["coverage_share"] >= 0.9
    assert found["mean_abs_pct"] <= 12
    assert found["by_publisher"]["mean_abs_pct"] <= 14
    assert found["inside_interval_share"] >= 0.88
    assert found["by_publisher"]["inside_interval_share"] >= 0.88
    families = found["by_family"]
    assert families["dense-bf16"]["mean_abs_pct"] <= 10
    assert families["dense-fp8"]["mean_abs_pct"] <= 11
    assert families["moe"]["mean_abs_pct"] <= 20.5
    assert families["dense-bf16"]["half_width_ratio"] <= 1.40


@pytest.mark.shared
def test_layouts_of_small_models_are_put_in_order() -> None:
    """No row of this table is in the fit: error, interval, and pairs more than 5% apart in the right order."""
    rows = read_rows(shared("data", "published", "training_vtrain.csv"))[::9]
    scored = kind_named("training").validate(rows, 0)
    found = summary("training", len(rows), scored)
    assert found["mean_abs_pct"] <= 15
    assert found["inside_interval_share"] >= 0.85
    assert kind_named("training").details(rows, scored)["pairs"]["right_order_share"] >= 0.85


@pytest.mark.shared
def test_published_memory_with_a_full_recipe() -> None:
    assert figures("memory", "data", "published", "memory.csv")["mean_abs_pct"] <= 5


@pytest.mark.shared
def test_one_gpu_in_plain_pytorch() -> None:
    found = figures("single-gpu", "data", "h200", "truth", "train_single_gpu.csv")["by_metric"]
    assert found["peak_bytes"]["median_abs_pct"] <= 2
    assert found["peak_bytes"]["worst_abs_pct"] <= 8
    assert found["step_s"]["median_abs_pct"] <= 5


@pytest.mark.shared
def test_products_left_out_of_the_table() -> None:
    assert figures("gemm", "data", "h200", "truth", "gemm.csv")["median_abs_pct"] <= 6


@pytest.mark.shared
def test_one_step_of_a_model_tightens_its_other_schedules_and_batches() -> None:
    rows = [r for r in read_rows(shared("data", "published", "training.csv")) if r["row_id"].startswith("zb_14.6b")]
    module = kind_named("training")
    blind = summary("training", len(rows), module.validate(rows, 0))["mean_abs_pct"]
    told = summary("training", len(rows), module.validate(rows, 1))["mean_abs_pct"]
    assert told < 0.9 * blind
