"""Processes on GPUs: `nvidia-smi pmon` and `--query-compute-apps`. Rows of one moment and card add up to a sample of that card."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from stallwise.evidence.artifact import Artifact
from stallwise.evidence.evidence import Item
from stallwise.late import np
from stallwise.readers._cells import INDEX
from stallwise.readers._gpu_samples import GpuSamples, number

FORMAT = "nvidia-smi processes"
LABELLED = True  # names of columns and of programs
CAPTURE = "nvidia-smi pmon -c 60 -s um > pmon.txt"
MIB = "MiB"
# Column of a sample and the unit that the tool leaves out, by the names of pmon and of --query-compute-apps.
ADDED = {
    "sm": ("utilisation_share", "%"),
    "mem": ("memory_utilisation_share", "%"),
    "fb": ("memory_used_bytes", MIB),
    "used_memory": ("memory_used_bytes", MIB),
    "used_gpu_memory": ("memory_used_bytes", MIB),
}
CARD = ("gpu", "gpu_uuid", "gpu_bus_id", "gpu_serial", "gpu_name")
_INDEX = re.compile(INDEX)
_HEAD_LINES = 100


def recognises(name: str, head: bytes) -> bool:
    """A header with a process, and with what it takes of a card."""
    lines = head[:65536].decode("utf-8", "replace").splitlines()[:_HEAD_LINES]
    return any(_header(line) for line in lines)


def read(artifact: Artifact) -> Iterator[Item]:
    """A sample of a card for each moment; a process that comes again begins a new one."""
    samples = GpuSamples(artifact.name)
    header: list[str] = []
    moments: list[dict[str, dict[str, float]]] = [{}]
    lines: dict[tuple[int, str], int] = {}
    seen: set[tuple[str, ...]] = set()
    for at, line in enumerate(artifact.lines(), 1):
        if found := _header(line):
            header = found
            continue
        cells = _cells(line)
        if len(cells) < len(header) or not header or line.startswith("#"):
            continue
        row = dict(zip(header, cells, strict=False))
        card = next((row[key] for key in CARD if row.get(key)), "0")
        who = card, row.get("pid", ""), row.get("timestamp", "")
        if who in seen:
            moments.append({})
            seen = set()
        seen.add(who)
        sums = moments[-1].setdefault(card, {})
        lines.setdefault((len(moments) - 1, card), at)
        for key, (column, unit) in ADDED.items():
            if key in row:
                taken = number(row[key], unit)
                sums[column] = sums.get(column, 0.0) + (taken if taken == taken else 0.0)
    _put(samples, moments, lines)
    yield from samples.items()


def _put(
    samples: GpuSamples, moments: Sequence[dict[str, dict[str, float]]], lines: dict[tuple[int, str], int]
) -> None:
    rows = [(at, card, sums) for at, moment in enumerate(moments) for card, sums in moment.items()]
    names = sorted({column for _, _, sums in rows for column in sums})
    numbers: dict[str, int] = {}
    known = [int(card) if _INDEX.fullmatch(card) else numbers.setdefault(card, len(numbers)) for _, card, _ in rows]
    columns = {name: np.array([sums.get(name, np.nan) for _, _, sums in rows]) for name in names}
    columns["time_s"] = np.array([float(at) for at, _, _ in rows])
    if "utilisation_share" in columns:
        columns["utilisation_share"] = np.minimum(columns["utilisation_share"], 1.0)
    samples.add([(gpu, None) for gpu in known], columns, [lines[at, card] for at, card, _ in rows])


def _header(line: str) -> list[str]:
    titles = [cell.partition("[")[0].strip().lower() for cell in _cells(line.lstrip("# "))]
    is_header = (
        "pid" in titles and any(t in ADDED for t in titles) and any(t in CARD or t == "process_name" for t in titles)
    )
    return titles if is_header else []


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in (line.split(",") if "," in line else line.split())]
