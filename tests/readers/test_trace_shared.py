"""A trace that several processes read is the trace that one reads."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stallwise.evidence.artifact import Artifact
from stallwise.evidence.timeline import Timeline
from stallwise.readers.native import _trace_shared, torch_trace

EVENTS = 24_000  # several blocks of a megabyte


def event(at: int) -> dict[str, Any]:
    name = f"aten::op{at % 97}"
    args = {"External id": at, "Input Dims": [[at % 13, 4]], "Input type": ["float"]}
    if at % 3 == 1:
        return {"ph": "X", "cat": "kernel", "name": f"k{at % 31}", "pid": 0, "tid": 7, "ts": at * 10 + 3, "dur": 5,
                "args": {"correlation": at - 1, "stream": 7, "grid": [at % 5, 1, 1]}}  # fmt: skip
    if at % 3 == 2:
        return {"ph": "i", "cat": "cpu_instant_event", "name": "[memory]", "pid": 1, "tid": 2, "ts": at * 10,
                "args": {"Bytes": at, "Total Allocated": at, "Total Reserved": at, "Device Type": 1, "Device Id": 0}}  # fmt: skip
    return {"ph": "X", "cat": "cpu_op", "name": name, "pid": 1, "tid": 2, "ts": at * 10, "dur": 8, "args": args}


def written(folder: Path, more: list[dict[str, Any]]) -> Artifact:
    path = folder / "trace.json.gz"
    events = [{"ph": "M", "name": "thread_name", "pid": 1, "tid": 2, "args": {"name": "main"}}]
    events += [event(at) for at in range(EVENTS)]
    document = {"schemaVersion": 1, "deviceProperties": [], "traceEvents": events + more, "traceName": "x"}
    path.write_bytes(gzip.compress(json.dumps(document, indent=1).encode(), 1))
    return Artifact(path.name, path)


def timeline(artifact: Artifact) -> Timeline:
    return next(item for item in torch_trace.read(artifact) if isinstance(item, Timeline))


def test_every_column_is_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    artifact = written(tmp_path, [])
    alone = timeline(artifact)
    monkeypatch.setattr(_trace_shared, "_parts", lambda _: 3)
    assert _trace_shared.columns_together(artifact) is not None
    shared = timeline(artifact)
    for column in ("start_s", "duration_s", "kind", "correlation", "external", "size_bytes"):
        np.testing.assert_array_equal(getattr(shared, column), getattr(alone, column), column)
    assert [shared.names[c] for c in shared.name] == [alone.names[c] for c in alone.name]
    assert [shared.lanes[c] for c in shared.lane] == [alone.lanes[c] for c in alone.lane]
    assert [shared.details_of(at) for at in range(len(shared))] == [alone.details_of(at) for at in range(len(alone))]
    assert shared.memory is not None and alone.memory is not None
    np.testing.assert_array_equal(shared.memory.allocated_bytes, alone.memory.allocated_bytes)
    assert shared.properties == alone.properties


def test_what_spans_blocks_is_left_to_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begun = [{"ph": "B", "cat": "cpu_op", "name": "range", "pid": 1, "tid": 2, "ts": 5}]
    artifact = written(tmp_path, begun)
    monkeypatch.setattr(_trace_shared, "_parts", lambda _: 2)
    assert _trace_shared.columns_together(artifact) is None
    assert len(timeline(artifact)) == EVENTS


def test_a_damaged_trace_is_left_to_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    artifact = written(tmp_path, [])
    assert artifact.path is not None
    whole = artifact.path.read_bytes()
    artifact.path.write_bytes(whole[: len(whole) // 2])
    monkeypatch.setattr(_trace_shared, "_parts", lambda _: 2)
    assert _trace_shared.columns_together(Artifact(artifact.name, artifact.path)) is None


def test_small_traces_are_not_shared(tmp_path: Path) -> None:
    assert _trace_shared._parts(written(tmp_path, [])) == 1


def test_a_large_trace_is_shared_among_the_cores_that_are_free(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_trace_shared, "WORTH_SHARING_BYTES", 0)
    monkeypatch.setattr(_trace_shared.os, "sched_getaffinity", lambda _: set(range(8)), raising=False)
    artifact = written(tmp_path, [])
    monkeypatch.setattr(_trace_shared, "RUNNING", tmp_path / "loadavg")
    for mean, running, parts in ((0.4, 1, 3), (6.2, 7, 2), (7.0, 8, 1), (30.0, 30, 1), (30.0, 1, 3), (0.4, 30, 3)):
        (tmp_path / "loadavg").write_text(f"{mean} 9.9 9.9 {running}/171 26055\n")
        assert _trace_shared._parts(artifact) == parts
    (tmp_path / "loadavg").unlink()
    assert _trace_shared._parts(artifact) == 3
