"""`nvidia-smi --query-gpu=... --format=csv`, once or in a loop, with or without units and header; and `nvidia-smi dmon`, whose
columns depend on -s and on the driver, so its header names them."""

from __future__ import annotations

import re
from collections.abc import Iterator

from stallwise.evidence.artifact import Artifact
from stallwise.evidence.evidence import Item
from stallwise.evidence.fact import Note, Source
from stallwise.readers._cells import INDEX
from stallwise.readers._gpu_samples import GpuSamples, gpu_words, put, seconds
from stallwise.readers._patterns import patterns
from stallwise.readers.shapes.delimited import cells_in

FORMAT = "nvidia-smi CSV"
CAPTURE = (
    "nvidia-smi --query-gpu=timestamp,index,utilization.gpu,clocks.sm,power.draw,temperature.gpu "
    "--format=csv -lms 200 > smi.csv"
)

REASONS = ("clocks_event_reasons.", "clocks_throttle_reasons.")
IDENTITY = {"index", "uuid", "gpu_uuid", "pci.bus_id", "gpu_bus_id", "name", "gpu_name", "timestamp", "driver_version"}
_P = patterns("nvidia_smi")
HEADER_SEARCH_LINES = 100
LEAST_TOLD = 2  # columns of dmon, its gpu among them
_INDEX = re.compile(INDEX)
Header = list[tuple[str, str]]  # names and units


def recognises(name: str, head: bytes) -> bool:
    """A header with at least two of nvidia-smi's own field names, or rows that can only be its."""
    lines = head[:65536].decode("utf-8", errors="replace").splitlines()[:HEADER_SEARCH_LINES]
    return any(_header(line) is not None or _P["headerless"].match(line) for line in lines)


def read(artifact: Artifact) -> Iterator[Item]:
    """One table of samples per GPU."""
    samples = GpuSamples(artifact.name)
    header: Header | None = None
    ids: dict[str, int] = {}
    broken = 0
    guessed = spaced = False
    for number, line in enumerate(artifact.lines(), 1):
        if (found := _header(line)) is not None:
            header, spaced = found, line.startswith("#")
            continue
        if header is None and _P["headerless"].match(line):
            header, guessed = _guess(line), True
        if header is None or not line.strip() or (spaced and line.startswith("#")):
            continue
        cells = line.split() if spaced else cells_in(line)
        if len(cells) == len(header):
            _take(header, cells, ids, samples, number)
        else:
            broken += not spaced
    yield from samples.items()
    if broken:
        yield Note(f"{broken} lines do not fit the header and were left out", Source(artifact.name))
    if guessed:
        yield Note("no header: columns were told apart by their units", Source(artifact.name))


def _header(line: str) -> Header | None:
    if asked := _P["query"].search(line):
        return [(name.lower(), "") for name in asked["names"].split(",")]
    if line.startswith("#"):
        words = gpu_words()["dmon"]
        titles = line.lstrip("#").lower().split()
        told = "gpu" in titles[:4] and sum(title in words for title in titles) > LEAST_TOLD
        return [tuple(words.get(title, (title, ""))) for title in titles] if told else None
    cells = [_P["header_cell"].match(cell) for cell in line.split(",")] if "," in line else []
    names = [(match[1].lower(), match[2] or "") for match in cells if match]
    ours = sum(name in gpu_words()["query"] or name.startswith(REASONS) for name, _ in names)
    known = ours + sum(name in IDENTITY for name, _ in names)
    return names if len(names) == len(cells) and ours and known >= 2 else None


def _take(header: Header, cells: list[str], ids: dict[str, int], samples: GpuSamples, line: int) -> None:
    row = {name: cell for (name, _), cell in zip(header, cells, strict=True)}
    values: dict[str, float] = {}
    for (name, unit), cell in zip(header, cells, strict=True):
        if name in ("timestamp", "time"):
            values["time_s"] = seconds(cell if name == "timestamp" else f"{row.get('date', '20000101')} {cell}")
        elif name not in IDENTITY:
            put(values, name, cell, unit)
    bus_id = row.get("pci.bus_id") or row.get("gpu_bus_id") or ""
    key = row.get("index") or bus_id or row.get("uuid") or row.get("gpu_uuid") or ""
    index = int(key) if _INDEX.fullmatch(key.strip()) else ids.setdefault(key, len(ids))
    samples.add(index, values, line, name=row.get("name") or row.get("gpu_name") or "", bus_id=bus_id)


def _guess(line: str) -> Header:
    """Names for the columns of a headerless row, where the units leave no doubt; the rest stays unnamed."""
    units = {unit: list(names) for unit, names in gpu_words()["headerless"]["units"].items()}
    names: Header = []
    for place, cell in enumerate(cells_in(line)):
        unit = cell.rsplit(" ", 1)[-1]
        if units.get(unit) and cell[:1].isdigit():
            names.append((units[unit].pop(0), unit))
            continue
        told = (
            name
            for at, name, match in gpu_words()["headerless"]["cells"]
            if at in (place, -1) and re.fullmatch(match, cell)
        )
        names.append((next(told, f"unnamed_{place}"), ""))
    return names
