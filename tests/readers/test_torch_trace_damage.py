"""A damaged trace gives what is readable and says what was lost; nothing else than StallwiseError ever comes out."""

from __future__ import annotations

import gzip
import json
from contextlib import suppress

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from stallwise.errors import StallwiseError
from stallwise.evidence import blocks as unpacking
from stallwise.evidence.artifact import Artifact
from stallwise.evidence.timeline import GPU_KINDS, Kind, Timeline
from stallwise.readers import readers_for
from stallwise.readers.native import torch_trace
from tests.readers.trace_files import document, event, read_bytes, step

EVENTS = [e for n in range(60) for e in step(n, start_us=n * 250.0)]
WHOLE = json.dumps(document(EVENTS, distributedInfo={"rank": 1}), indent=1).encode()


@pytest.fixture(params=[1 << 22, 900], ids=["one block", "many blocks"])
def any_block_size(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unpacking, "BLOCK_BYTES", request.param)


@pytest.mark.usefixtures("any_block_size")
def test_a_cut_file_gives_the_events_before_the_cut() -> None:
    timeline, notes = read_bytes(WHOLE[: len(WHOLE) // 2])
    assert 0.45 * len(EVENTS) < len(timeline) < 0.55 * len(EVENTS)
    assert any("middle of an event" in n for n in notes)


@pytest.mark.usefixtures("any_block_size")
def test_a_cut_gzip_gives_the_events_before_the_cut() -> None:
    packed = gzip.compress(WHOLE)
    timeline, notes = read_bytes(packed[: len(packed) * 2 // 3])
    assert len(timeline) > 0.2 * len(EVENTS)
    assert any("cut off" in n for n in notes)


@pytest.mark.usefixtures("any_block_size")
def test_gzip_members_one_after_another_are_one_file() -> None:
    half = len(WHOLE) // 2
    timeline, notes = read_bytes(gzip.compress(WHOLE[:half]) + gzip.compress(WHOLE[half:]))
    assert (len(timeline), notes) == (len(EVENTS), [])


def test_bytes_after_the_gzip_are_mentioned() -> None:
    timeline, notes = read_bytes(gzip.compress(WHOLE) + b"garbage")
    assert len(timeline) == len(EVENTS)
    assert any("after the gzip stream" in n for n in notes)


def test_a_flipped_byte_in_the_gzip_keeps_the_start() -> None:
    packed = bytearray(gzip.compress(WHOLE))
    packed[len(packed) // 2] ^= 0xFF
    try:
        timeline, notes = read_bytes(bytes(packed))
    except StallwiseError:
        return
    assert len(timeline) > 0 and notes


@pytest.mark.usefixtures("any_block_size")
@pytest.mark.parametrize(
    ("found", "planted"),
    [
        (b'"ProfilerStep#7"', b'"ProfilerStep#7\x01\n\t"'),  # control characters: pytorch issue 130622
        (b'"ProfilerStep#7"', b'"ProfilerStep#7 \xff\xfe\xc0"'),  # not UTF-8
        (b'"dur": 200', b'"dur": NaN'),
        (b'"dur": 200', b'"dur": Infinity'),
        (b'"schemaVersion": 1', b'"schemaVersion": NaN'),
        (b'"args": {}', b'"args": "none"'),
        (b'"args": {}', b'"args": null'),
        (b'"correlation": 70', b'"correlation": "0x46"'),
        (b'"correlation": 70', b'"correlation": null'),
    ],
)
def test_one_odd_value_costs_nothing_else(found: bytes, planted: bytes) -> None:
    assert found in WHOLE
    timeline, notes = read_bytes(WHOLE.replace(found, planted, 1))
    assert len(timeline) == len(EVENTS)
    assert timeline.scope.rank == 1
    assert notes == []


@pytest.mark.usefixtures("any_block_size")
def test_a_hole_in_the_middle_costs_the_events_around_it() -> None:
    middle = len(WHOLE) // 2
    timeline, notes = read_bytes(WHOLE[:middle] + b"\x00" * 50 + WHOLE[middle + 300 :])
    assert len(EVENTS) - 6 <= len(timeline) < len(EVENTS)
    assert any("not readable" in n for n in notes)


def test_events_without_time_are_counted() -> None:
    rows = [*step(), {"ph": "X", "cat": "cpu_op", "name": "x", "pid": 1, "tid": 1, "ts": None, "dur": 1}]
    timeline, notes = read_bytes(json.dumps(document(rows)).encode())
    assert len(timeline) == 7
    assert any("1 events have no usable time" in n for n in notes)


def test_a_broken_clock_does_not_stretch_the_trace() -> None:
    rows = [*step(), {**event("late", "kernel", 0, 1), "ts": 0}]
    timeline, notes = read_bytes(json.dumps(document(rows)).encode())
    assert timeline.span_s < 1e-3
    assert any("no usable time" in n for n in notes)


def test_negative_durations_are_instants() -> None:
    timeline, _ = read_bytes(json.dumps(document([event("x", "kernel", 0, -5)])).encode())
    assert timeline.duration_s.tolist() == [0.0]


@pytest.mark.parametrize(
    "content",
    [b'{"traceEvents": []}', b'{"traceEvents": [', b'{"traceEvents": 7}', b'{"schemaVersion":1,"deviceProperties":[]}'],
)
def test_a_trace_without_events_says_what_was_read_and_how_to_get_one(content: bytes) -> None:
    artifact = Artifact("empty.json", content=content)
    with pytest.raises(StallwiseError) as caught:
        list(torch_trace.read(artifact))
    assert "empty.json" in caught.value.problem
    assert f"{len(content)} bytes" in caught.value.problem
    assert "stallwise record" in caught.value.hint


SMALL = json.dumps(document(step(), distributedInfo={"rank": 0})).encode()


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    at=st.integers(0, len(SMALL) - 1),
    length=st.integers(0, 40),
    planted=st.one_of(
        st.binary(max_size=12), st.sampled_from([b"{", b"}", b"[", b"]", b'"', b"1e999", b"[[[[", b"\\u"])
    ),
    packed=st.booleans(),
    kept=st.floats(0.1, 1.0),
)
def test_mutated_bytes_raise_only_our_errors(at: int, length: int, planted: bytes, packed: bool, kept: float) -> None:
    content = SMALL[:at] + planted + SMALL[at + length :]
    if packed:
        content = gzip.compress(content)
        content = content[: max(int(len(content) * kept), 1)]
    artifact = Artifact("mutated.json", content=content)
    try:
        for reader in readers_for(artifact):
            for item in reader.read(artifact):
                if isinstance(item, Timeline):
                    assert len(item) <= 8
                    item.details_of(0)
    except StallwiseError:
        pass


@settings(max_examples=100, deadline=None)
@given(st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4)
    | st.dictionaries(st.sampled_from(["ph", "ts", "dur", "cat", "name", "args", "pid", "tid", "correlation"]), inner),
    max_leaves=12,
))  # fmt: skip
def test_any_json_under_traceevents_raises_only_our_errors(value: object) -> None:
    content = json.dumps({"traceEvents": [{"ph": "X", "ts": 1, "args": value}, value]}).encode()
    with suppress(StallwiseError):
        list(torch_trace.read(Artifact("odd.json", content=content)))


def in_kinetos_order(steps: int) -> list[dict]:
    """Host events of all steps first, then the device's, as the profiler writes them."""
    rows = [e for n in range(steps) for e in step(n, start_us=n * 250.0)]
    return sorted(rows, key=lambda e: e["cat"] == "kernel")


@pytest.mark.parametrize("share", [0.3, 0.5, 0.75])
def test_of_a_trace_cut_before_its_kernels_the_host_is_read_and_the_gpu_is_never_called_idle(share: float) -> None:
    content = json.dumps(document(in_kinetos_order(60), deviceProperties=[{"id": 0, "name": "X"}])).encode()
    timeline, notes = read_bytes(content[: int(len(content) * share)])
    assert len(timeline) > 20 and not len(timeline.rows(*GPU_KINDS))
    assert any("before the cut" in n for n in notes)


def test_a_cut_trace_that_wrote_its_launches_last_is_not_judged_by_its_kernels() -> None:
    rows = sorted(
        in_kinetos_order(60),
        key=lambda e: ["cpu_op", "kernel"].index(e["cat"]) if e["cat"] in ("cpu_op", "kernel") else 2,
    )
    content = json.dumps(document(rows)).encode()
    timeline, notes = read_bytes(content[: content.rindex(b'"kernel"') - 2000])
    assert len(timeline) > 20 and not len(timeline.rows(*GPU_KINDS)) and any("no launch" in n for n in notes)


def test_operators_without_launches_at_the_cut_are_no_idle_gpu() -> None:
    """Old profilers wrote each launch beside its kernel, after all operators."""
    others = [e for e in in_kinetos_order(60) if e["cat"] in ("cuda_runtime", "kernel")]
    operators = [e for e in in_kinetos_order(60) if e["cat"] not in ("cuda_runtime", "kernel")]
    content = json.dumps(document(operators + sorted(others, key=lambda e: e["args"]["correlation"]))).encode()
    timeline, notes = read_bytes(content[: int(len(content) * 0.6)])
    assert not len(timeline.rows(*GPU_KINDS)) and any("operators go on" in n for n in notes)


def test_a_trace_cut_among_its_kernels_ends_where_the_kernels_end() -> None:
    content = json.dumps(document(in_kinetos_order(60))).encode()
    timeline, notes = read_bytes(content[: int(len(content) * 0.9)])
    kernels = timeline.rows(Kind.KERNEL)
    assert timeline.end_s[kernels].max() > 0.9 * timeline.span_s
    assert 40 < len(kernels) < 120
    assert any("have no kernel" in n for n in notes)
