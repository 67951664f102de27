"""Every stage of every loop within 3% or a millisecond of a hand clock, and stages, wait and the rest add up to the step."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("torch", reason="needs CPU PyTorch: pip install torch")

import torch
from tests.recorder.truth.loops import LOOPS, HandClock, pair, train

import stallwise
from stallwise.doctor.examine import diagnose
from stallwise.doctor.live import load, look
from stallwise.readers.records.rank_record import STAGES, RankRecord, parse

pytestmark = [pytest.mark.torch, pytest.mark.slow]

SHARE, LEAST_S = 0.03, 1e-3
ATTEMPTS = (
    4  # a busy machine may take tens of milliseconds between the hand clock and ours; a wrong count is wrong each time
)


@pytest.fixture(scope="module", autouse=True)
def warm() -> None:
    """PyTorch's first step makes what all others use, some of it between the hand clock and the hooks."""
    torch.set_num_threads(1)
    train(lambda stage: HandClock({}, stage), *pair(), torch.ones(1, 8))


@pytest.mark.parametrize("name", LOOPS)
def test_a_stage_is_what_the_hand_clock_says(name: str, tmp_path: Path) -> None:
    for attempt in range(ATTEMPTS):
        folder = tmp_path / str(attempt)
        steps, hand, record = recorded(name, folder)
        assert len(record.step) == steps
        for took_s, stages in zip(record.duration_s, record.host_s, strict=True):
            assert sum(stages.values()) <= took_s + 1e-6
        adds_up_in_every_view(folder, record)
        both = {what: (found_s, hand[what] / steps) for what, found_s in found(record, hand).items()}
        wrong = {what: x for what, x in both.items() if abs(x[0] - x[1]) > max(SHARE * x[1], LEAST_S)}
        if not wrong:
            return
    raise AssertionError(f"{name}: found and true seconds a step: {wrong}")


def recorded(name: str, folder: Path) -> tuple[int, dict[str, float], RankRecord]:
    """How many steps a loop took, what the hand clock says, and the record."""
    hand: dict[str, float] = {}
    stallwise.start(str(folder), watchdog=False)
    try:
        steps = LOOPS[name](lambda stage: HandClock(hand, stage))
    finally:
        stallwise.stop()
    return steps, hand, parse((folder / "rank-00000.jsonl").read_bytes().splitlines())


def found(record: RankRecord, hand: dict[str, float]) -> dict[str, float]:
    """Seconds a step by the names of the hand clock."""
    steps = len(record.step)

    def of(what: str) -> float:
        if what == "side":
            return float(record.side().sum()) / steps
        if what.startswith("span "):
            return sum(spans.get(what[5:], 0.0) for spans in record.span_s) / steps
        return sum(stages.get(what, 0.0) for stages in record.host_s) / steps

    return {what: of(what) for what in hand}


def adds_up_in_every_view(folder: Path, record: RankRecord) -> None:
    view = look(load(folder))
    whole_s = sum(s for name, s in view.stages.items() if name in (*STAGES, "side"))
    assert whole_s == pytest.approx(view.step_s, rel=0.01)
    diagnosis = diagnose(str(folder))
    ledger = diagnosis.ledger
    steady = record.steady()
    assert ledger is not None
    assert ledger.whole_s == pytest.approx(sum(steady.duration_s) / len(steady.step), rel=0.01)
    assert "while traced" not in diagnosis.subject
