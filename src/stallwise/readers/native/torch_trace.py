"""PyTorch profiler (Kineto) traces in Chrome's JSON, of every year and vendor, packed or not, whole or damaged."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from stallwise.errors import UnreadableInput
from stallwise.evidence import gc_pause
from stallwise.evidence.artifact import Artifact
from stallwise.evidence.blocks import Blocks
from stallwise.evidence.evidence import Item
from stallwise.evidence.fact import WHOLE, Note, Scope, Source
from stallwise.evidence.timeline import Device
from stallwise.readers._cells import number_of, whole_of
from stallwise.readers._patterns import patterns
from stallwise.readers.native._trace_columns import Columns
from stallwise.readers.native._trace_cut import trusted_part
from stallwise.readers.native._trace_shared import columns_of, columns_together
from stallwise.readers.records.trace_split import Split

FORMAT = "PyTorch trace"
CAPTURE = "stallwise record -- python train.py"
EXCLUSIVE = True
DEVICE_ONLY = "trace_device.json.gz"  # what the recorder calls the window in which only the device was traced
AGAIN = "capture it again: stallwise record -- python train.py"

_XLA_PLANE = re.compile(rb'"name"\s*:\s*"/(host:CPU|device:[A-Z]+:\d+)')  # JAX names its processes so
_EVENT = re.compile(rb'"ph"\s*:\s*"[XBEMsfi]"')
_P = patterns("trace")


def recognises(name: str, head: bytes) -> bool:
    """An event array of Chrome's format that no other profiler signs."""
    return is_chrome_trace(name, head) and not is_of_xla(head)


def is_chrome_trace(name: str, head: bytes) -> bool:
    """An event array of Chrome's format, by its own words."""
    if name.endswith(DEVICE_ONLY):
        return False  # the same steps' kernels without their operators: for comparison, no run of its own
    if b'"traceEvents"' in head:
        return True
    text = head.lstrip(b"\xef\xbb\xbf \t\r\n")
    if text[:1] == b"[":
        return _EVENT.search(text[:65536]) is not None and b'"ts"' in text[:65536]
    # Head properties can be longer than the sample; these two only Kineto writes.
    return text[:1] == b"{" and b'"schemaVersion"' in text[:4096] and b'"deviceProperties"' in text[:4096]


def is_of_xla(head: bytes) -> bool:
    """Whether processes are named as XLA names its planes: a trace of JAX."""
    return _XLA_PLANE.search(head[:65536]) is not None


def read(artifact: Artifact) -> Iterator[Item]:
    """One timeline, and notes of what was lost."""
    with gc_pause.paused():
        columns, split, blocks = columns_together(artifact) or columns_of(artifact)
    if not split.found or not columns.parts:
        raise _nothing_inside(artifact, blocks, split)
    base_s = (number_of(split.properties.get("baseTimeNanoseconds")) or 0.0) * 1e-9
    timeline = columns.finish(Source(artifact.name), scope_of(artifact.name, split.properties), base_s)
    timeline.devices, timeline.properties = _devices(split.properties), split.properties
    if not len(timeline):
        raise _nothing_inside(artifact, blocks, split)
    yield from _losses(timeline.source, blocks, split, columns)
    if split.cut_off:
        timeline, cut_note = trusted_part(timeline)
        if cut_note:
            yield Note(cut_note, timeline.source, lost=True)
    yield timeline


def _nothing_inside(artifact: Artifact, blocks: Blocks, split: Split) -> UnreadableInput:
    size = f"{blocks.read_bytes:,} bytes"
    why = blocks.damage or ("it ends before the first event is complete" if split.cut_off else "")
    what = "no event with a time" if split.found else "no list of trace events"
    return UnreadableInput(
        f"{artifact.name}: read {size} of a trace and found {what}{'; ' + why if why else ''}",
        hint=f"stop the profiler before the process ends and {AGAIN}",
    )


def scope_of(name: str, properties: dict[str, Any]) -> Scope:
    """The rank as the trace itself says, else as the file's name says, else none."""
    known = whole_of(_stated_rank(properties))
    if known is not None and known >= 0:
        return Scope(rank=known)
    found = _P["rank_in_name"].search(re.split(r"[/\\!]", name)[-1])
    return Scope(rank=int(found[1])) if found else WHOLE


def _stated_rank(properties: dict[str, Any]) -> Any:
    info = properties.get("distributedInfo")
    return info.get("rank") if isinstance(info, dict) else None


def _devices(properties: dict[str, Any]) -> list[Device]:
    found = properties.get("deviceProperties")
    return [_device(d, at) for at, d in enumerate(found if isinstance(found, list) else []) if isinstance(d, dict)]


def _device(described: dict[str, Any], at: int) -> Device:
    index, units, major, minor = (
        whole_of(described.get(key)) or 0 for key in ("id", "numSms", "computeMajor", "computeMinor")
    )
    return Device(
        index=index if "id" in described else at,
        name=str(described.get("name", "")),
        memory_bytes=number_of(described.get("totalGlobalMem")) or 0.0,
        sm_count=units,
        compute_capability=f"{major}.{minor}" if "computeMajor" in described else "",
    )


def _losses(source: Source, blocks: Blocks, split: Split, columns: Columns) -> Iterator[Note]:
    if blocks.damage:
        yield Note(
            f"{blocks.damage} after {blocks.read_bytes:,} unpacked bytes; what came before was used", source, lost=True
        )
    if split.cut_off:
        yield Note("the trace ends in the middle of an event; what came before was used", source, lost=True)
    if split.lost:
        yield Note(f"{split.lost:,} events were not readable and are left out", source, lost=True)
    rank = _stated_rank(split.properties)
    if rank is not None and whole_of(rank) is None:
        yield Note(f"it says that it is of rank {str(rank)[:40]}, which is none", source)
    if columns.untimed:
        yield Note(f"{columns.untimed:,} events have no usable time and are left out", source, lost=True)
    unclosed = sum(map(len, columns.open_ranges.values()))
    if unclosed:
        yield Note(f"{unclosed:,} ranges were begun and never ended; they are left out", source)
