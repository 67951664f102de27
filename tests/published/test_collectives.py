"""Collectives against the published tables, each GPU generation also predicted without its own constants."""

from __future__ import annotations

from dataclasses import replace
from statistics import fmean, median

import pytest

from stallwise.physics.costs.collectives import collective_time, op_named
from stallwise.physics.costs.topology import NVLINK3, NVLINK4, NVLINK5, Link
from stallwise.planner.scoring import Row, read_rows, summary
from stallwise.planner.validation import collectives
from tests.shared_data import shared

SMALLEST_BYTES = 64e3


@pytest.fixture(scope="module")
def rows() -> list[Row]:
    return read_rows(shared("data", "published", "collectives.csv"))


def test_median_error_from_64_kb_up_is_at_most_12_percent(rows: list[Row]) -> None:
    large = [row for row in rows if float(row["size_bytes"] or 0) >= SMALLEST_BYTES]
    figures = summary("collectives", len(large), collectives.validate(large, 0))
    assert figures["median_abs_pct"] <= 12
    assert figures["predicted"] >= 0.95 * len(large)
    assert 0.85 <= figures["inside_interval_share"] <= 0.97


@pytest.mark.parametrize("own", [NVLINK3, NVLINK4, NVLINK5], ids=lambda link: link.name)
def test_a_generation_left_out_of_the_fit_is_still_predicted(rows: list[Row], own: Link) -> None:
    others = [link for link in (NVLINK3, NVLINK4, NVLINK5) if link is not own]
    borrowed = Link(
        own.name,
        own.byte_per_s,
        efficiency_share=fmean(link.efficiency_share for link in others),
        launch_s=fmean(link.launch_s for link in others),
        hop_s=fmean(link.hop_s for link in others),
    )
    errors, large = [], []
    for row in rows:
        fabric = collectives.fabric_from(row)
        if not row["source"].startswith("aiconfigurator") or fabric is None or fabric.link.name != own.name:
            continue
        blind = replace(fabric, link=borrowed)
        estimate = collective_time(op_named(row["collective"]), float(row["size_bytes"]), int(row["ranks"]), blind)
        errors.append(abs(estimate.seconds * 1e6 / float(row["time_us"]) - 1))
        if float(row["size_bytes"]) >= 64e6:
            large.append(errors[-1])
    assert median(errors) <= 0.30  # launch latencies differ between the measured machines by up to 2x
    assert median(large) <= 0.15  # link efficiencies do not


def test_calibrating_on_a_slow_fabric_brings_the_rest_close(rows: list[Row]) -> None:
    slow = [row for row in rows if row["source"] == "vidur profile a100_dgx" and row["nodes"] == "2"]
    before = summary("collectives", len(slow), collectives.validate(slow, 0))
    after = summary("collectives", len(slow), collectives.validate(slow, 12))
    assert after["median_abs_pct"] < before["median_abs_pct"] * 0.75
    assert after["predicted"] == before["predicted"] - 12


def test_the_measured_columns_are_not_looked_at(rows: list[Row]) -> None:
    blind = [{**row, "time_us": "1", "algbw_gbps": "1", "busbw_gbps": "1"} for row in rows[:50]]
    seen = [s.predicted for s in collectives.validate(rows[:50], 0)]
    assert [s.predicted for s in collectives.validate(blind, 0)] == seen
