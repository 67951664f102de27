"""The late rank is named on one clock, with its cause and its price; clocks alone make nobody late."""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path
from typing import Any

import pytest

from stallwise.causes.distributed.straggler_rank import straggler_rank
from stallwise.doctor.findings.finding import Finding
from stallwise.doctor.gather import gather
from stallwise.doctor.measures import measure_evidence
from stallwise.evidence.catalog import distributed as q
from stallwise.evidence.evidence import Evidence
from tests.measures.rank_copies import plain_training, write_copies
from tests.shared_data import shared

DELAY_US = 400.0
PLANTED = {
    "input": {"kind": "input", "delay_us": DELAY_US},
    "host": {"kind": "host", "delay_us": DELAY_US},
    "gc": {"kind": "gc", "delay_us": DELAY_US},
    "clocks": {"kind": "clocks", "slowdown": 1.4},
}


def seen(path: Path) -> Evidence:
    evidence = gather([str(path)], cache=False)
    measure_evidence(evidence)
    return evidence


def verdict(evidence: Evidence) -> Finding | None:
    found = [v for v in straggler_rank.verdicts(evidence) if isinstance(v, Finding)]
    return found[0] if found else None


@pytest.mark.parametrize("ranks", [2, 8])
@pytest.mark.parametrize("drift", [0.0, 2e-6])
def test_constant_and_drifting_clocks_make_nobody_late(tmp_path: Path, ranks: int, drift: float) -> None:
    evidence = seen(write_copies(tmp_path, plain_training(steps=8), ranks, offset_us=5000.0, drift=drift))
    assert evidence.value(q.RANKS_SEEN) == ranks
    assert evidence.value(q.CLOCK_ERROR) < 5e-6
    assert verdict(evidence) is None


@pytest.mark.parametrize("ranks", [2, 8])
@pytest.mark.parametrize("cause", PLANTED)
def test_a_planted_delay_names_the_rank_and_the_cause(tmp_path: Path, cause: str, ranks: int) -> None:
    doc = plain_training()
    evidence = seen(write_copies(tmp_path, doc, ranks, late=(1,), offset_us=811.0, **PLANTED[cause]))
    finding = verdict(evidence)
    assert finding is not None
    assert finding.scope.rank == 1
    assert evidence.text(q.STRAGGLER_CAUSE) == cause
    assert evidence.value(q.STRAGGLER_CAUSE_SHARE) >= 0.8
    planted_us = DELAY_US if cause != "clocks" else 0.4 * (12 * 90 + 40)
    assert finding.gain is not None
    assert finding.gain.low_s <= planted_us * 1e-6 * 1.02
    assert finding.gain.high_s == pytest.approx(planted_us * 1e-6, rel=0.2)
    assert finding.confidence >= 0.8


def test_five_hundred_and_twelve_ranks(tmp_path: Path) -> None:
    doc = plain_training(steps=4, kernels=5)
    folder = write_copies(tmp_path, doc, 512, late=(317,), packed=False, **PLANTED["input"])
    (folder / "rank-40.json").write_bytes(b'{"schemaVersion": 1, "traceEvents": [{"ph": "X", "na')
    (folder / "rank-41.json").unlink()
    evidence = seen(folder)
    finding = verdict(evidence)
    assert finding is not None
    assert finding.scope.rank == 317
    assert evidence.text(q.STRAGGLER_CAUSE) == "input"
    notes = " ".join(f"{n.text} {n.source}" for n in evidence.notes)
    assert "rank-40.json" in notes
    assert "510 of 512 ranks are here; not seen: 40, 41" in notes


def test_a_slow_node_is_named_as_one(tmp_path: Path) -> None:
    late = tuple(range(8, 12))
    evidence = seen(write_copies(tmp_path, plain_training(), 16, late=late, **PLANTED["host"]))
    finding = verdict(evidence)
    assert finding is not None
    assert "ranks 8-11" in finding.headline


def test_since_when_is_told(tmp_path: Path) -> None:
    doc = plain_training(steps=10, first_step=100)
    evidence = seen(write_copies(tmp_path, doc, 4, late=(2,), since_step=105, **PLANTED["host"]))
    assert evidence.value(q.STRAGGLER_SINCE) == 105
    assert 0.4 <= evidence.value(q.STRAGGLER_OFTEN) <= 0.6


def test_lateness_that_goes_round_is_nobodys(tmp_path: Path) -> None:
    doc = plain_training(steps=8)
    folders = [write_copies(tmp_path / str(r), doc, 4, late=(r,), **PLANTED["host"]) for r in range(4)]
    # Each rank is late in two of eight steps: steps 2r and 2r+1 of the copy in which it is the late one.
    mixed = tmp_path / "mixed"
    mixed.mkdir()
    for rank in range(4):
        rows: list[dict[str, Any]] = []
        for late, folder in enumerate(folders):
            made = json.loads(gzip.decompress((folder / f"rank-{rank}.json.gz").read_bytes()))
            rows += _steps_of(made, 4 + 2 * late, 6 + 2 * late)
        made["traceEvents"] = rows
        (mixed / f"rank-{rank}.json").write_text(json.dumps(made))
    evidence = seen(mixed)
    assert evidence.value(q.STRAGGLER_EXPLAINS, 0.0) < 0.5
    assert verdict(evidence) is None


def _steps_of(made: dict[str, Any], first: int, past: int) -> list[dict[str, Any]]:
    marks = {int(e["name"].split("#")[1]): e for e in made["traceEvents"] if e["name"].startswith("ProfilerStep#")}
    begin = marks[first]["ts"] - 0.5
    end = marks[past]["ts"] - 0.5 if past in marks else float("inf")
    return [e for e in made["traceEvents"] if begin <= e["ts"] < end]


def test_without_step_marks_collectives_are_matched_by_order(tmp_path: Path) -> None:
    doc = plain_training()
    folder = write_copies(tmp_path, doc, 4, late=(3,), packed=False, **PLANTED["host"])
    for rank, path in enumerate(sorted(folder.iterdir())):
        made = json.loads(path.read_text())
        cut = sorted(e["ts"] for e in made["traceEvents"])[0] + 400 * rank  # windows that begin anywhere
        made["traceEvents"] = [
            e for e in made["traceEvents"] if e["ts"] >= cut and not e["name"].startswith(("ProfilerStep", "enumerate"))
        ]
        path.write_text(json.dumps(made))
    finding = verdict(seen(folder))
    assert finding is not None
    assert finding.scope.rank == 3


def test_ranks_that_traced_other_steps_are_said_to_be_so(tmp_path: Path) -> None:
    write_copies(tmp_path, plain_training(first_step=4), 2)
    made = json.loads(gzip.decompress((tmp_path / "rank-1.json.gz").read_bytes()))
    for e in made["traceEvents"]:
        if e["name"].startswith("ProfilerStep#"):
            e["name"] = f"ProfilerStep#{int(e['name'].split('#')[1]) + 50}"
    (tmp_path / "rank-1.json.gz").write_bytes(gzip.compress(json.dumps(made).encode()))
    evidence = seen(tmp_path)
    assert verdict(evidence) is None
    assert any("share no collective" in n.text for n in evidence.notes)


def test_a_late_rank_whose_trace_is_missing_is_not_blamed_on_another(tmp_path: Path) -> None:
    doc = plain_training(steps=8)
    folder = write_copies(tmp_path, doc, 4, late=(2,), since_step=8, **PLANTED["host"])
    (folder / "rank-2.json.gz").unlink()
    evidence = seen(folder)
    assert verdict(evidence) is None
    assert evidence.value(q.UNSEEN_WAIT) > 100e-6
    assert any("not seen: 2" in n.text for n in evidence.notes)


def test_bytes_are_timed_without_the_waiting(tmp_path: Path) -> None:
    folder = write_copies(tmp_path, plain_training(), 8, late=(5,), **PLANTED["host"])
    evidence = seen(folder)
    rate = evidence.get(q.BUS_BANDWIDTH, group="0")
    assert rate is not None
    assert rate.number == pytest.approx(16e6 * 2 * 7 / 8 / 60e-6, rel=0.1), "60 us of bytes, not 460 of waiting"
    should = evidence.get(q.BUS_EXPECTED, group="0")
    assert should is not None and should.low is not None and should.low < should.number
    waiting, moving = evidence.value(q.WAIT_FOR_PEERS), evidence.value(q.MOVING_BYTES)
    assert waiting == pytest.approx(DELAY_US * 1e-6 * 7 / 8, rel=0.15)
    assert moving == pytest.approx(120e-6, rel=0.2)


@pytest.mark.shared
def test_the_real_late_rank_of_eight_is_named() -> None:
    evidence = seen(shared("data/traces/param_dlrm_8rank"))
    finding = verdict(evidence)
    assert finding is not None
    assert finding.scope.rank == 7
    assert evidence.value(q.CLOCK_ERROR) < 20e-6


@pytest.mark.shared
@pytest.mark.parametrize("cause", [None, "input", "host", "clocks"])
def test_copies_of_a_real_trace(tmp_path: Path, cause: str | None) -> None:
    path = shared("data/traces/hta/two_of_128_ranks/sampled_rank-0.json.gz")
    doc = json.loads(gzip.decompress(path.read_bytes()))
    how: dict[str, Any] = {None: {}, "clocks": {"kind": "clocks", "slowdown": 1.5}}.get(
        cause, {"kind": cause, "delay_us": 150_000.0}
    )
    evidence = seen(write_copies(tmp_path, doc, 8, late=() if cause is None else (6,), **how))
    finding = verdict(evidence)
    if cause is None:
        assert finding is None
        return
    assert finding is not None
    assert finding.scope.rank == 6
    assert evidence.text(q.STRAGGLER_CAUSE) == cause


@pytest.mark.shared
@pytest.mark.slow
@pytest.mark.parametrize(
    ("cause", "ranks"),
    [("input", 64), ("host", 24), ("clocks", 24)]
    if os.environ.get("STALLWISE_FULL")
    else [("input", 32), ("clocks", 16)],
)
def test_hundreds_of_copies_of_a_real_trace(tmp_path: Path, cause: str, ranks: int) -> None:
    path = shared("data/traces/hta/two_of_128_ranks/sampled_rank-0.json.gz")
    doc = json.loads(gzip.decompress(path.read_bytes()))
    kept = ("kernel", "gpu_memcpy", "cuda_runtime", "user_annotation")  # operators change nothing here
    doc["traceEvents"] = [e for e in doc["traceEvents"] if str(e.get("cat", "")).lower() in kept and "ts" in e]
    planted: dict[str, Any] = {"kind": cause, "delay_us": 150_000.0}
    how = {"kind": "clocks", "slowdown": 1.5} if cause == "clocks" else planted
    evidence = seen(write_copies(tmp_path, doc, ranks, late=(ranks - 12,), packed=False, **how))
    finding = verdict(evidence)
    assert finding is not None
    assert finding.scope.rank == ranks - 12
    assert evidence.text(q.STRAGGLER_CAUSE) == cause
