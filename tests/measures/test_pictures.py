"""Tables for pictures: small, true to the ledger, and under the roof."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from stallwise.costs.roofline import rate_by_pipes, roof_flop_per_s
from stallwise.doctor.examine import diagnose
from stallwise.evidence.fact import Table
from stallwise.findings.diagnosis import Diagnosis
from stallwise.measures.step_picture import COLUMNS, LEDGER_LANE
from stallwise.specs.hardware import gpu

REPO = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def starved() -> Diagnosis:
    return diagnose(str(REPO / "examples" / "traces" / "loader_slow" / "trace.json.gz"))


def lane(table: Table, name: str) -> dict[str, np.ndarray]:  # type: ignore[type-arg]
    mine = table.columns["lane"] == name
    return {key: values[mine] for key, values in table.columns.items()}


def test_the_ledger_lane_covers_the_step_without_gap_or_overlap(starved: Diagnosis) -> None:
    (table,) = starved.evidence.table("step picture")
    ledger = lane(table, LEDGER_LANE)
    assert ledger["start_s"][0] == pytest.approx(0.0)
    assert ledger["end_s"][-1] == pytest.approx(table.meta["length_s"])
    assert np.allclose(ledger["end_s"][:-1], ledger["start_s"][1:])


def test_the_picture_agrees_with_the_ledger(starved: Diagnosis) -> None:
    (table,) = starved.evidence.table("step picture")
    drawn = lane(table, LEDGER_LANE)
    wait_s = float((drawn["end_s"] - drawn["start_s"])[drawn["account"] == "input wait"].sum())
    assert starved.ledger is not None
    booked_s = next(s for a, s in starved.ledger.seconds.items() if a.value == "input wait")
    assert wait_s == pytest.approx(booked_s, rel=0.1)  # one step against the mean of four


def test_the_picture_stays_small_and_inside_its_step(starved: Diagnosis) -> None:
    (table,) = starved.evidence.table("step picture")
    streams = {n for n in table.columns["lane"] if n.startswith("stream")}
    assert len(table) <= COLUMNS * (len(streams) + 1) + 200
    assert (table.columns["start_s"] >= -1e-12).all()
    assert (table.columns["end_s"] <= table.meta["length_s"] + 1e-12).all()
    assert (table.columns["end_s"] >= table.columns["start_s"]).all()


def test_a_step_that_stands_out_is_shown_too() -> None:
    found = diagnose(str(REPO / "tests" / "cases" / "checkpoint-stall" / "ckpt_stall" / "trace.json.gz"))
    which = {t.meta["which"]: t for t in found.evidence.table("step picture")}
    assert set(which) == {"usual", "slowest"}
    assert "checkpoint" in lane(which["slowest"], LEDGER_LANE)["account"]
    assert "checkpoint" not in lane(which["usual"], LEDGER_LANE)["account"]


def test_profiled_kernels_stand_under_the_roof() -> None:
    found = diagnose(str(REPO / "tests" / "fixtures" / "kernels" / "kernels_raw.csv.gz"))
    (table,) = found.evidence.table("roofline")
    c = table.columns
    assert len(table) >= 5
    assert (c["rate_flop_per_s"] <= c["roof_flop_per_s"] * (1 + 1e-9)).all()
    assert (c["intensity"] > 0).all()
    by_name = {n.split("(")[0]: i for i, n in enumerate(c["name"].tolist())}
    bound, streaming = by_name["fma_bound"], by_name["stream_triad"]
    assert c["rate_flop_per_s"][bound] > 0.8 * c["roof_flop_per_s"][bound]
    assert c["intensity"][streaming] < 1.0 < c["intensity"][bound]


def test_the_roof_is_the_lower_of_memory_and_arithmetic() -> None:
    card = gpu("h100-sxm")
    assert roof_flop_per_s(card, "bf16", 1.0) == card.bandwidth_byte_per_s
    assert roof_flop_per_s(card, "bf16", 1e6) == card.peak("bf16")
    assert roof_flop_per_s(card, "bf16", card.ridge("bf16")) == pytest.approx(card.peak("bf16"))


def test_pipes_in_use_become_operations() -> None:
    card = gpu("h100-sxm")
    assert rate_by_pipes(card, 0.5, "fp16", 0.0, 0.0) == 0.5 * card.peak("fp16")
    assert rate_by_pipes(card, 0.0, "", 0.25, 0.0) == 0.25 * card.peak("fp32")
