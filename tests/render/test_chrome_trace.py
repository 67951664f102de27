"""Annotated traces: the user's events untouched, ours beside them on the same clock."""

from __future__ import annotations

import gzip
import io
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stallwise.doctor.annotate import annotate
from stallwise.doctor.examine import diagnose
from stallwise.doctor.findings.annotation import Slice
from stallwise.errors import BadRequest, UnreadableInput
from stallwise.render.chrome_trace import PROCESS, blocks, write_annotated

TRACE = Path(__file__).parents[2] / "examples" / "traces" / "loader_slow" / "trace.json.gz"
ONE = [Slice("track", "name <b>", 1.5, 0.25, {"cause": "x"})]


@pytest.fixture(scope="module")
def annotated(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    diagnosis = diagnose(str(TRACE))
    artifact, slices = annotate(diagnosis, [str(TRACE)])
    path = tmp_path_factory.mktemp("out") / "annotated.json.gz"
    with artifact.open() as original:
        write_annotated(path, slices, original)
    found: dict[str, Any] = json.loads(gzip.decompress(path.read_bytes()))
    return found


def test_the_users_own_events_are_all_there(annotated: dict[str, Any]) -> None:
    before = json.loads(gzip.decompress(TRACE.read_bytes()))
    theirs = [e for e in annotated["traceEvents"] if e.get("pid") != PROCESS]
    assert theirs == before["traceEvents"]
    assert annotated["deviceProperties"] == before["deviceProperties"]


def test_findings_are_tracks_at_the_place_they_speak_of(annotated: dict[str, Any]) -> None:
    ours = [e for e in annotated["traceEvents"] if e.get("pid") == PROCESS]
    names = [e["args"]["name"] for e in ours if e["name"] == "thread_name"]
    assert names[:2] == ["steps", "where the time goes"] and "input-starved" in names
    waits = [e for e in ours if e["ph"] == "X" and e["tid"] == names.index("input-starved") + 1]
    kernels = [e for e in annotated["traceEvents"] if e.get("cat") == "kernel"]
    first, last = min(e["ts"] for e in kernels), max(e["ts"] + e["dur"] for e in kernels)
    assert waits and all(first - 1e6 < e["ts"] < last for e in waits)
    for wait in waits:  # no kernel runs in the middle of a wait
        middle = wait["ts"] + wait["dur"] / 2
        assert not [k for k in kernels if k["ts"] <= middle <= k["ts"] + k["dur"]]
        assert wait["args"]["fix"]


@pytest.mark.parametrize(
    "original",
    [b'{"a": 1, "traceEvents": []}', b'{"traceEvents" : [ {"ph":"X","ts":1} ] , "b": 2}', b"[]", b' [{"ph":"X"}]'],
)
def test_every_form_of_trace_stays_json(original: bytes) -> None:
    whole = json.loads(b"".join(blocks(ONE, io.BytesIO(original))))
    listed = whole["traceEvents"] if isinstance(whole, dict) else whole
    assert next(e for e in listed if e.get("pid") == PROCESS and e["ph"] == "X")["ts"] == 1.5e6


def test_what_is_no_trace_is_refused() -> None:
    with pytest.raises(UnreadableInput):
        list(blocks(ONE, io.BytesIO(b"hello")))


def test_without_a_trace_there_is_nothing_to_annotate(tmp_path: Path) -> None:
    case = tmp_path / "case.toml"
    case.write_text('mfu = "22%"\ngpu = "h100"\n', encoding="utf-8")
    with pytest.raises(BadRequest):
        annotate(diagnose(str(case)), [str(case)])


@given(st.text(max_size=40), st.floats(0, 1e6), st.floats(0, 1e3))
def test_any_words_and_times_stay_json(words: str, start: float, length: float) -> None:
    json.loads(b"".join(blocks([Slice(words, words, start, length, {words: words})], None)))
