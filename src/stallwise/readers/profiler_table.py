"""The text table of torch.profiler's key_averages(): where host and device time went by operator."""

from __future__ import annotations

import re
from collections.abc import Iterator

from stallwise.evidence.artifact import Artifact
from stallwise.evidence.catalog import run
from stallwise.evidence.evidence import Item
from stallwise.evidence.fact import Fact, Source
from stallwise.readers._cells import count_of, number_of
from stallwise.units import Unit, parse

FORMAT = "PyTorch profiler table"
CAPTURE = "print(prof.key_averages().table(sort_by='cuda_time_total'))"
_SYNCS = ("cudaStreamSynchronize", "cudaDeviceSynchronize", "cudaEventSynchronize", "hipDeviceSynchronize")
_CALLERS = ("aten::item", "aten::_local_scalar_dense", "aten::nonzero", "aten::is_nonzero", "aten::to", "aten::copy_")
_LOADER = re.compile(r"DataLoader.*__next__|_next_data")
_TOTAL = re.compile(r"Self (CPU|CUDA|device) time total\s*[:=]\s*([\d.]+\s*\w+)", re.IGNORECASE)


def recognises(name: str, head: bytes) -> bool:
    """Its column titles."""
    return b"Self CPU %" in head[:65536] and b"# of Calls" in head[:65536]


def read(artifact: Artifact) -> Iterator[Item]:
    """Time in synchronisation with its caller, in loading, and on the device."""
    lines = artifact.lines()
    header = next((line for line in lines if "Self CPU %" in line), "")
    columns = [c.strip() for c in re.split(r"\s{2,}", header.strip())]
    rows: dict[str, tuple[dict[str, str], int]] = {}
    for number, text in enumerate(lines, 1):
        cells = re.split(r"\s{2,}", text.strip())
        if len(cells) == len(columns) and "%" in text and cells[0] != "Name":
            rows.setdefault(cells[0], (dict(zip(columns, cells, strict=True)), number))
    totals = {m[1].lower(): parse(m[2], Unit.SECOND) for m in map(_TOTAL.search, lines) if m}
    host_s = totals.get("cpu", 0.0)
    yield from _syncs(rows, host_s, artifact.name)
    device_s = totals.get("cuda", totals.get("device", 0.0))
    if host_s and device_s:
        yield Fact(run.DEVICE_SHARE, min(device_s / host_s, 1.0), Source(artifact.name))
    for name, (row, number) in rows.items():
        if _LOADER.search(name) and host_s:
            share = parse(row.get("CPU total", "0s"), Unit.SECOND) / host_s
            yield Fact(run.DATA_SHARE, min(share, 1.0), Source(artifact.name, f"line {number}"))


def _syncs(rows: dict[str, tuple[dict[str, str], int]], host_s: float, name: str) -> Iterator[Item]:
    total_s, calls, place = 0.0, 0, 0
    for key in _SYNCS:
        if key in rows:
            row, place = rows[key]
            total_s += parse(row.get("Self CPU", "0s"), Unit.SECOND)
            calls += count_of(number_of(row.get("# of Calls", "0")) or 0.0)
    if not total_s:
        return
    source = Source(name, f"line {place}")
    if host_s:
        yield Fact(run.SYNC_SHARE, total_s / host_s, source, samples=calls)
    yield Fact(run.SYNC_TIME, total_s / max(calls, 1), source, samples=calls)
    caller = next(
        (c for c in _CALLERS if c in rows and parse(rows[c][0].get("CPU total", "0s"), Unit.SECOND) > 0.5 * total_s), ""
    )
    if caller:
        yield Fact(run.SYNC_CALLER, caller, source)
