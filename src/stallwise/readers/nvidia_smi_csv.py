"""`nvidia-smi --query-gpu=... --format=csv`, once or in a loop, with or without units and header; and `nvidia-smi dmon`, whose
columns depend on -s and on the driver, so its header names them."""

from __future__ import annotations

import re
from collections.abc import Iterator

from stallwise.evidence.artifact import Artifact
from stallwise.evidence.catalog.hardware import GPU_LOST
from stallwise.evidence.evidence import Item
from stallwise.evidence.fact import Fact, Note, Source
from stallwise.readers._cells import INDEX
from stallwise.readers._gpu_samples import LOST, GpuSamples, gpu_words, number, seconds
from stallwise.readers.shapes.delimited import cells_in

FORMAT = "nvidia-smi CSV"
CAPTURE = (
    "nvidia-smi --query-gpu=timestamp,index,utilization.gpu,clocks.sm,power.draw,temperature.gpu "
    "--format=csv -lms 200 > smi.csv"
)

IDENTITY = {"index", "uuid", "gpu_uuid", "pci.bus_id", "gpu_bus_id", "name", "gpu_name", "timestamp", "driver_version"}
REASONS = re.compile(r"^clocks_(?:throttle|event)_reasons\.(\w+)$")
HEADER_CELL = re.compile(r"^\s*([a-z_][\w.]*)\s*(?:\[([^\]]+)\])?\s*$", re.IGNORECASE)
HEADERLESS = re.compile(r"^\s*\d{4}/\d\d/\d\d \d\d:\d\d:\d\d(?:\.\d+)?\s*,.*\d\s*(?:%|MiB|MHz|W)\s*(?:,|$)")
HEADER_SEARCH_LINES = 100
LEAST_TOLD = 2  # columns of dmon, its gpu among them
_INDEX = re.compile(INDEX)
ALL_REASONS = (1 << 48) - 1  # more bits than any driver has given a meaning to, and few enough for a float


def recognises(name: str, head: bytes) -> bool:
    """A header with at least two of nvidia-smi's own field names, or rows that can only be its."""
    lines = head[:65536].decode("utf-8", errors="replace").splitlines()[:HEADER_SEARCH_LINES]
    return any(_header(line) is not None or HEADERLESS.match(line) for line in lines)


def read(artifact: Artifact) -> Iterator[Item]:
    """One table of samples per GPU."""
    samples = GpuSamples(artifact.name)
    header: list[tuple[str, str]] | None = None
    ids: dict[str, int] = {}
    lost: list[Fact] = []
    broken = 0
    guessed = spaced = False
    for line_number, line in enumerate(artifact.lines(), 1):
        found = _header(line)
        if found is not None:
            header, spaced = found, line.startswith("#")
            continue
        if LOST.search(line):
            lost.append(Fact(GPU_LOST, line.strip()[:200], Source(artifact.name, f"line {line_number}")))
            continue
        if header is None and HEADERLESS.match(line):
            header, guessed = _guess(line), True
        if header is None or not line.strip() or (spaced and line.startswith("#")):
            continue
        cells = line.split() if spaced else cells_in(line)
        if len(cells) != len(header):
            broken += not spaced
            continue
        _take(dict(zip((h[0] for h in header), cells, strict=True)), dict(header), ids, samples, line_number)
    yield from samples.items()
    yield from lost
    if broken:
        yield Note(f"{broken} lines do not fit the header and were left out", Source(artifact.name))
    if guessed:
        yield Note("no header: columns were told apart by their units", Source(artifact.name))


def _header(line: str) -> list[tuple[str, str]] | None:
    if line.startswith("#"):
        words = gpu_words()["dmon"]
        titles = line.lstrip("#").lower().split()
        told = "gpu" in titles[:4] and sum(title in words for title in titles) > LEAST_TOLD
        return [tuple(words.get(title, (title, ""))) for title in titles] if told else None
    if "," not in line:
        return None
    cells = []
    for cell in line.split(","):
        match = HEADER_CELL.match(cell)
        if not match:
            return None
        cells.append((match[1].lower(), match[2] or ""))
    ours = [n for n, _ in cells if n in gpu_words()["query"] or REASONS.match(n)]
    known = [n for n, _ in cells if n in IDENTITY]
    return cells if ours and len(ours) + len(known) >= 2 else None


def _take(
    row: dict[str, str], units: dict[str, str], ids: dict[str, int], samples: GpuSamples, line_number: int
) -> None:
    values: dict[str, float] = {}
    mask = 0
    has_mask = False
    for name, cell in row.items():
        if name in ("timestamp", "time"):
            values["time_s"] = seconds(cell if name == "timestamp" else f"{row.get('date', '20000101')} {cell}")
        elif match := REASONS.match(name):
            bits = _reason_bits(match[1], cell)
            if bits is not None:
                mask |= bits
                has_mask = True
        elif name in gpu_words()["query"]:
            flag = {"yes": 1.0, "no": 0.0}.get(cell.strip().lower())
            values[gpu_words()["query"][name]] = number(cell, units[name]) if flag is None else flag
    if has_mask:
        values["reasons"] = float(mask & ALL_REASONS)
    bus_id = row.get("pci.bus_id") or row.get("gpu_bus_id") or ""
    key = row.get("index") or bus_id or row.get("uuid") or row.get("gpu_uuid") or ""
    index = int(key) if _INDEX.fullmatch(key.strip()) else ids.setdefault(key, len(ids))
    samples.add(index, values, line_number, name=row.get("name") or row.get("gpu_name") or "", bus_id=bus_id)


def _reason_bits(field: str, cell: str) -> int | None:
    text = cell.strip().lower()
    if field in ("active", "supported"):
        if field == "supported" or not text.startswith("0x"):
            return None
        try:
            return int(text, 16)
        except ValueError:
            return None
    part = number(cell)  # of the time
    if text not in ("active", "not active") and part != part:
        return None
    return gpu_words()["reasons"].get(field, 0) if text == "active" or part > 0 else 0


def _guess(line: str) -> list[tuple[str, str]]:
    """Names for the columns of a headerless row, where the units leave no doubt; the rest stays unnamed."""
    wanted = {
        "%": ["utilization.gpu", "utilization.memory"],
        "W": ["power.draw", "power.limit"],
        "MiB": ["memory.used", "memory.total"],
        "MHz": ["clocks.sm", "clocks.mem"],
    }
    names: list[tuple[str, str]] = []
    for place, cell in enumerate(cells_in(line)):
        unit = cell.rsplit(" ", 1)[-1]
        if place == 0:
            names.append(("timestamp", ""))
        elif unit in wanted and wanted[unit] and number(cell) == number(cell):
            names.append((wanted[unit].pop(0), unit))
        elif re.fullmatch(r"0x[0-9a-fA-F]{16}", cell):
            names.append(("clocks_event_reasons.active", ""))
        elif re.fullmatch(r"[0-9a-fA-F]{8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.\d", cell):
            names.append(("pci.bus_id", ""))
        elif place == 1 and cell.isdigit():
            names.append(("index", ""))
        elif re.match(r"(NVIDIA|Tesla|GeForce|Quadro|AMD) ", cell):
            names.append(("name", ""))
        else:
            names.append((f"unnamed_{place}", ""))
    return names
