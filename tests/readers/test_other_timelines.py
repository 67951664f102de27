"""Timelines of other tools are read, or named for what they are."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stallwise.doctor.examine import diagnose
from stallwise.doctor.findings.diagnosis import State
from stallwise.errors import UnreadableInput
from stallwise.evidence.artifact import Artifact
from stallwise.evidence.catalog import kernel as k
from stallwise.evidence.fact import Fact, Note
from stallwise.evidence.timeline import Timeline
from stallwise.readers import readers_for
from stallwise.readers.native import chakra_trace, jax_trace, jax_xplane, rocprof_json, speedscope, torch_trace
from tests.shared_data import shared


def written(folder: Path, document: Any) -> Artifact:
    path = folder / "profile.json"
    path.write_text(json.dumps(document), encoding="utf-8")
    return Artifact(path.name, path)


CHAKRA = {"schema": "1.1.0-chakra.0.0.4", "pid": 1, "nodes": [{"id": 1, "name": "aten::mm"}]}
SPEEDSCOPE = {
    "$schema": "https://www.speedscope.app/file-format-schema.json",
    "shared": {"frames": [{"name": "main", "file": "a.py", "line": 1}, {"name": "decode", "file": "b.py", "line": 7}]},
    "profiles": [{"type": "sampled", "name": "main", "unit": "seconds", "samples": [[0, 1], [0]], "weights": [3, 1]}],
}
ROCPROF = {
    "rocprofiler-sdk-tool": [
        {
            "kernel_symbols": [{"kernel_id": 4, "formatted_kernel_name": "Cijk_A"}],
            "buffer_records": {
                "kernel_dispatch": [
                    {"start_timestamp": 0, "end_timestamp": 3000, "dispatch_info": {"kernel_id": 4}},
                    {"start_timestamp": 4000, "end_timestamp": 5000, "dispatch_info": {"kernel_id": 9}},
                ]
            },
        }
    ]
}


@pytest.mark.parametrize(
    ("document", "reader"), [(CHAKRA, chakra_trace), (SPEEDSCOPE, speedscope), (ROCPROF, rocprof_json)]
)
def test_each_is_read_by_its_own_reader_alone(tmp_path: Path, document: Any, reader: Any) -> None:
    artifact = written(tmp_path, document)
    assert [r.FORMAT for r in readers_for(artifact)] == [reader.FORMAT]


def test_what_tells_nothing_of_speed_is_named_and_unclear(tmp_path: Path) -> None:
    diagnosis = diagnose(str(written(tmp_path, CHAKRA).path), cache=False)
    assert diagnosis.state is State.UNCLEAR
    assert any("Chakra" in note.text for note in diagnosis.notes)


def test_kernels_of_rocprof_are_summed(tmp_path: Path) -> None:
    facts = [f for f in rocprof_json.read(written(tmp_path, ROCPROF)) if isinstance(f, Fact)]
    shares = {f.scope.kernel: f.value for f in facts if f.quantity is k.TIME_SHARE}
    assert shares == pytest.approx({"Cijk_A": 0.75, "unnamed kernel": 0.25})


def test_damage_is_said(tmp_path: Path) -> None:
    document = {"rocprofiler-sdk-tool": [{"buffer_records": {"kernel_dispatch": [{"x": 1}]}}]}
    with pytest.raises(UnreadableInput):
        list(rocprof_json.read(written(tmp_path, document)))


def test_an_empty_rocprof_result_says_so(tmp_path: Path) -> None:
    (note,) = rocprof_json.read(written(tmp_path, {"rocprofiler-sdk-tool": [{}]}))
    assert isinstance(note, Note)


@pytest.mark.parametrize("case", ["jax_healthy", "jax_input"])
def test_a_jax_profile_is_the_same_timeline_in_both_of_its_forms(case: str) -> None:
    pytest.importorskip("google.protobuf")
    as_json = shared("data", "h200", "profiler_cost", f"{case}.vm.trace.json.gz")
    stored = shared("data", "h200", "profiler_cost", f"{case}.vm.xplane.pb")
    one, other = Artifact(as_json.name, as_json), Artifact(stored.name, stored)
    assert jax_trace.recognises(one.name, one.head) and not torch_trace.recognises(one.name, one.head)
    assert jax_xplane.recognises(other.name, other.head)
    told = next(item for item in jax_trace.read(one) if isinstance(item, Timeline))
    found = next(item for item in jax_xplane.read(other) if isinstance(item, Timeline))
    work = [np.flatnonzero([t.lanes[c].on_device for c in t.lane]) for t in (told, found)]
    assert len(work[0]) == len(work[1]) > 0
    assert [told.text(r) for r in work[0]] == [found.text(r) for r in work[1]]
    np.testing.assert_allclose(told.duration_s[work[0]], found.duration_s[work[1]], atol=2e-9)


def test_a_cut_profile_is_refused_with_a_reason(tmp_path: Path) -> None:
    pytest.importorskip("google.protobuf")
    path = tmp_path / "a.xplane.pb"
    path.write_bytes(b"\x0a\xff\x01\x12\x09/host:CPU\x00")
    with pytest.raises(UnreadableInput, match="no whole XLA profile"):
        list(jax_xplane.read(Artifact(path.name, path)))
