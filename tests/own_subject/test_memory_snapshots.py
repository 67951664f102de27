"""A snapshot: a leak shows only from pass to pass, a storm of segments is churn, a first step's states are neither."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pytest

from stallwise.doctor.findings.diagnosis import State
from tests.own_subject.asked import asked, words

MIB = 1 << 20
FORWARD = [{"filename": "model.py", "line": 12, "name": "forward"}]
OPTIMIZER = [{"filename": "torch/optim/adamw.py", "line": 3, "name": "step"}]


class Record:
    """An allocator's record, written as PyTorch writes it."""

    def __init__(self) -> None:
        self.trace: list[dict[str, Any]] = []
        self.live: dict[int, tuple[int, list[Any]]] = {}
        self.at = 4096

    def note(self, action: str, address: int, size: int, frames: list[Any]) -> None:
        at = {"action": action, "addr": address, "size": size, "frames": frames, "stream": 0}
        self.trace.append({**at, "time_us": 1000 * len(self.trace)})

    def alloc(self, size: int, frames: list[Any] = FORWARD) -> int:
        self.at += size + 512
        self.live[self.at] = (size, frames)
        self.note("alloc", self.at, size, frames)
        return self.at

    def free(self, address: int) -> None:
        size, frames = self.live.pop(address)
        self.note("free_completed", address, size, frames)

    def step(self, kept: int = 0) -> None:
        """Forward and backward over sixteen layers; `kept` bytes stay."""
        for address in [self.alloc(32 * MIB) for _ in range(16)][::-1]:
            self.free(address)
        if kept:
            self.alloc(kept)

    def dumped(self) -> bytes:
        blocks = [
            {"address": a, "size": size, "state": "active_allocated", "frames": f}
            for a, (size, f) in sorted(self.live.items())
        ]
        segments = [
            {"device": 0, "address": b["address"], "total_size": b["size"], "segment_type": "large", "blocks": [b]}
            for b in blocks
        ]
        return pickle.dumps({"segments": segments, "device_traces": [self.trace]}, 4)


def test_passes_that_come_back_are_in_line_with_their_numbers(tmp_path: Path) -> None:
    record = Record()
    record.alloc(100 * MIB)
    for _ in range(4):
        record.step()
    answer = asked(tmp_path, "snap.pickle", record.dumped())
    said = words(answer)
    assert answer.state is State.HEALTHY and "no allocation failed" in said
    assert "peak 0.60 GiB" in said and "4 passes" in said and "0.10 GiB" in said


def test_the_states_of_a_first_step_are_no_leak(tmp_path: Path) -> None:
    record = Record()
    record.step()
    for _ in range(8):
        record.alloc(24 * MIB, OPTIMIZER)
    for _ in range(3):
        record.step()
    assert asked(tmp_path, "snap.pickle", record.dumped()).state is State.HEALTHY


def test_one_pass_says_that_growth_needs_more(tmp_path: Path) -> None:
    record = Record()
    record.alloc(100 * MIB)
    record.step()
    record.step()
    one = Record()
    one.alloc(64 * MIB)
    for address in [one.alloc(8 * MIB) for _ in range(40)][::-1]:
        one.free(address)
    assert "needs more than one" in words(asked(tmp_path, "snap.pickle", one.dumped()))


def test_memory_that_stays_from_pass_to_pass_is_a_leak(tmp_path: Path) -> None:
    record = Record()
    record.alloc(200 * MIB)
    for _ in range(8):
        record.step(kept=100 * MIB)
    answer = asked(tmp_path, "snap.pickle", record.dumped())
    assert answer.state is State.SICK and answer.ranked[0] == "memory-leak"


def test_segments_taken_and_given_back_are_churn(tmp_path: Path) -> None:
    record = Record()
    record.alloc(100 * MIB)
    for turn in range(30):
        record.note("segment_alloc", 1 << 40 | turn << 24, 20 * MIB, FORWARD)
        record.step()
        record.note("segment_free", 1 << 40 | turn << 24, 20 * MIB, [])
    answer = asked(tmp_path, "snap.pickle", record.dumped())
    assert answer.ranked[0] == "allocator-churn" and "30" in words(answer)


@pytest.mark.parametrize("part", [0.3, 0.9])
def test_a_cut_snapshot_is_never_well(tmp_path: Path, part: float) -> None:
    from stallwise.errors import StallwiseError

    record = Record()
    for _ in range(4):
        record.step()
    data = record.dumped()
    with pytest.raises(StallwiseError, match=r"cut|damaged|pickle"):
        asked(tmp_path, "snap.pickle", data[: int(part * len(data))])
