"""rocprofv3 results as JSON (rocprofiler-sdk): the time of every kernel on an AMD card."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from stallwise.errors import UnreadableInput
from stallwise.evidence.artifact import Artifact
from stallwise.evidence.evidence import Item
from stallwise.evidence.fact import Note, Source
from stallwise.readers.nsys_stats import NANOSECOND, SummaryRow, kernel_facts

FORMAT = "rocprof results"
EXCLUSIVE = True
_TOOL = "rocprofiler-sdk-tool"


def recognises(name: str, head: bytes) -> bool:
    """The tool's own name as a key."""
    return f'"{_TOOL}"'.encode() in head[:65536]


def read(artifact: Artifact) -> Iterator[Item]:
    """Total and mean time of every kernel, and its share."""
    try:
        processes = json.loads(artifact.text())[_TOOL]
        dispatched = [pair for process in _listed(processes) for pair in _dispatches(process)]
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        raise UnreadableInput(f"{artifact.name} is no whole rocprof result", hint="let rocprofv3 finish") from error
    source = Source(artifact.name)
    if not dispatched:
        yield Note("rocprof recorded no kernel: trace with --kernel-trace", source)
        return
    took: defaultdict[str, list[float]] = defaultdict(list)
    for name, seconds in dispatched:
        took[name].append(seconds)
    rows = [SummaryRow(sum(each), len(each), name) for name, each in took.items()]
    yield from kernel_facts(sorted(rows, key=lambda row: -row.total_s), artifact.name)


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _dispatches(process: dict[str, Any]) -> Iterator[tuple[str, float]]:
    names = {
        symbol["kernel_id"]: symbol.get("formatted_kernel_name") or symbol.get("kernel_name") or ""
        for symbol in process.get("kernel_symbols", ())
    }
    for record in process.get("buffer_records", {}).get("kernel_dispatch", ()):
        seconds = (record["end_timestamp"] - record["start_timestamp"]) * NANOSECOND
        name = str(names.get(record["dispatch_info"]["kernel_id"], ""))
        if seconds >= 0:
            yield name or "unnamed kernel", seconds
