"""One step as boxes: true to the ledger, complete, small whatever the trace holds, and the same in every telling."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stallwise.doctor.examine import diagnose
from stallwise.doctor.findings.diagnosis import Diagnosis
from stallwise.doctor.measures._merged_events import shown_events
from stallwise.evidence.fact import Table

REPO = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def starved() -> Diagnosis:
    return diagnose(str(REPO / "examples" / "traces" / "loader_slow" / "trace.json.gz"))


@pytest.fixture(scope="module")
def saved() -> Diagnosis:
    return diagnose(str(REPO / "tests" / "cases" / "checkpoint-stall" / "ckpt_stall" / "trace.json.gz"))


@pytest.fixture(scope="module")
def fed_late() -> Diagnosis:
    return diagnose(str(REPO / "tests" / "cases" / "input-starved" / "resnet_loader" / "trace.json.gz"))


def ledger_boxes(table: Table, version: int = 0) -> dict[str, np.ndarray[Any, Any]]:
    mine = (table.columns["track"] == 0) & (table.columns["version"] == version)
    return {key: values[mine] for key, values in table.columns.items()}


def categories(table: Table, version: int = 0) -> dict[str, float]:
    boxes, found = ledger_boxes(table, version), dict.fromkeys(table.meta["accounts"], 0.0)
    for code, start, end in zip(boxes["account"], boxes["start_s"], boxes["end_s"], strict=True):
        found[table.meta["accounts"][code]] += end - start
    return found


def test_every_telling_has_a_ledger_without_gap_or_overlap(starved: Diagnosis, fed_late: Diagnosis) -> None:
    (unmoved,), (table,) = starved.evidence.table("timeline"), fed_late.evidence.table("timeline")
    assert [v["word"] for v in table.meta["versions"]][:3] == ["clean", "as traced", "fixed (no-input-wait)"]
    # Where recording cost too little to tell, the trace is the step.
    assert [v["word"] for v in unmoved.meta["versions"]][:2] == ["as traced", "fixed (no-input-wait)"]
    for number, told in enumerate(table.meta["versions"]):
        boxes = ledger_boxes(table, number)
        assert boxes["start_s"][0] == pytest.approx(0.0, abs=1e-9)
        assert boxes["end_s"][-1] == pytest.approx(told["length_s"])
        assert np.allclose(boxes["end_s"][:-1], boxes["start_s"][1:], atol=1e-9)


def test_the_boxes_agree_with_the_ledger(starved: Diagnosis) -> None:
    (table,) = starved.evidence.table("timeline")
    assert starved.ledger is not None
    booked_s = next(s for a, s in starved.ledger.seconds.items() if a.value == "input wait")
    assert categories(table)["input wait"] == pytest.approx(booked_s, rel=0.1)  # one step against the mean of four


def test_the_fixed_step_has_the_same_work_and_no_input_wait(starved: Diagnosis) -> None:
    (table,) = starved.evidence.table("timeline")
    clean, fixed = categories(table), categories(table, 1)
    assert fixed["input wait"] < 0.01 * clean["input wait"]
    assert fixed["compute"] == pytest.approx(clean["compute"], rel=0.02)
    c = table.columns
    streams = [i for i, (kind, _) in enumerate(table.meta["tracks"]) if kind == "stream"]
    work = np.isin(c["track"], streams)
    lasts, after = (c["end_s"] - c["start_s"])[work], (c["end_s:1"] - c["start_s:1"])[work]
    assert np.allclose(lasts, after, atol=2e-9)


def test_the_critical_path_fills_the_step_link_by_link(starved: Diagnosis, saved: Diagnosis) -> None:
    for table in (*starved.evidence.table("timeline"), *saved.evidence.table("timeline")):
        path = table.meta["path"]
        assert path["start_s"][0] == pytest.approx(0.0, abs=1e-9)
        assert path["end_s"][-1] == pytest.approx(table.meta["length_s"])
        assert np.allclose(path["end_s"][:-1], path["start_s"][1:])
        assert sum(path["seconds"].values()) == pytest.approx(table.meta["length_s"])
    # The loader's wait is the host's; the step of the save is the host's nearly whole.
    assert starved.evidence.table("timeline")[0].meta["path"]["seconds"]["the host"] == pytest.approx(0.062, rel=0.05)


def test_a_step_that_stands_out_is_shown_too(saved: Diagnosis) -> None:
    which = {t.meta["which"]: t for t in saved.evidence.table("timeline")}
    assert set(which) == {"usual", "slowest"}
    assert categories(which["slowest"])["checkpoint"] > 1.0
    assert categories(which["usual"])["checkpoint"] == 0.0
    assert saved.scenes[0].table is which["slowest"]  # where the finding shows


def test_a_finding_points_at_what_proves_it(starved: Diagnosis) -> None:
    scene = starved.scenes[0]
    table, boxes = scene.table, list(scene.proves[0])
    names = [table.meta["names"][table.columns["name"][i]] for i in boxes]
    assert "input wait" in names and any("DataLoader" in name for name in names)
    assert not any("gemm" in name or "nvjet" in name for name in names)


def test_a_block_is_no_wider_than_what_it_merges() -> None:
    rng = np.random.default_rng(3)
    start = np.sort(rng.uniform(0, 1.0, 200_000))
    length = rng.exponential(2e-6, len(start))
    zeros = np.zeros(len(start), np.int64)
    shown = shown_events(zeros, start, start + length, zeros, zeros > 0, 9_000, 3_000)
    assert len(shown) <= 12_000
    ends = np.maximum.reduceat((start + length)[shown.member], shown.first)
    assert (ends - start[shown.member[shown.first]]).max() < 1 / 1000


events = st.lists(
    st.tuples(st.integers(0, 3), st.integers(0, 10_000), st.integers(1, 500), st.integers(0, 9), st.booleans()),
    max_size=200,
)


@given(events, st.integers(1, 60), st.integers(1, 60))
def test_every_event_is_in_exactly_one_box(
    rows: list[tuple[int, int, int, int, bool]], most_events: int, most_blocks: int
) -> None:
    row, start, length, name = (np.array([r[i] for r in rows], np.int64) for i in range(4))
    first = np.array([r[4] for r in rows], bool)
    shown = shown_events(row, start * 1e-6, (start + length) * 1e-6, name, first, most_events, most_blocks)
    assert sorted(shown.member.tolist()) == list(range(len(rows)))
    assert shown.count.sum() == len(rows)
    few = max(most_events // 16, 1)
    assert len(shown) <= max(most_events + most_blocks, 4 + 2 * few)
    for begin, count, longest in zip(shown.first, shown.count, shown.longest, strict=True):
        members = shown.member[begin : begin + count]
        assert len(set(row[members].tolist())) == 1  # no block reaches over tracks or levels
        assert length[longest] == length[members].max()
