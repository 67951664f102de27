"""`nvidia-smi --query-gpu=... --format=csv`, once or in a loop, with or without units and header; and `nvidia-smi dmon`, whose
columns depend on -s and on the driver, so its header names them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

from stallwise.evidence.artifact import Artifact
from stallwise.evidence.evidence import Item
from stallwise.evidence.fact import Note, Source
from stallwise.readers._cells import INDEX
from stallwise.readers._gpu_samples import GpuSamples, Values, each, gpu_words, put, seconds
from stallwise.readers._patterns import patterns
from stallwise.readers.shapes.delimited import cells_in

FORMAT = "nvidia-smi CSV"
LABELLED = True  # labels and values: its words name what is measured, not what is wrong
CAPTURE = (
    "nvidia-smi --query-gpu=timestamp,index,utilization.gpu,clocks.sm,power.draw,temperature.gpu "
    "--format=csv -lms 200 > smi.csv"
)

IDENTITY = frozenset(gpu_words()["identity"])
_P = patterns("nvidia_smi")
HEADER_SEARCH_LINES = 100
PROCESS = "pid"
LEAST_COLUMNS = 2  # columns of dmon, its gpu among them
_INDEX = re.compile(INDEX)
Header = list[tuple[str, str]]  # names and units


def recognises(name: str, head: bytes) -> bool:
    """A header with at least two of nvidia-smi's own field names, or rows that can only be its."""
    lines = head[:65536].decode("utf-8", errors="replace").splitlines()[:HEADER_SEARCH_LINES]
    return any(_header(line) is not None or _P["headerless"].match(line) for line in lines)


def read(artifact: Artifact) -> Iterator[Item]:
    """One table of samples per GPU."""
    samples = GpuSamples(artifact.name)
    ids: dict[str, int] = {}
    broken, lines, words = 0, artifact.lines(), artifact.skeletons
    titled = words.lines_of(words.where(lambda line: _header(line) is not None))
    headers = {at: header for at in titled if (header := _header(lines[at])) is not None}
    plain = range(min(headers, default=len(lines)))
    starts = [(at, _guess(lines[at]), False) for at in plain if _P["headerless"].match(lines[at])][:1]
    guessed = bool(starts)
    for at, header in headers.items():
        if not starts or starts[-1][1] != header:  # dmon says it again and again
            starts.append((at, header, lines[at].startswith("#")))
    for (at, header, spaced), (end, _, _) in pairwise([*starts, (len(lines), [], False)]):
        row_numbers = [
            n for n in range(at, end) if n not in headers and lines[n].strip() and not (spaced and lines[n][0] == "#")
        ]
        if header[0][0] == "entity":
            row_numbers = [n for n in row_numbers if lines[n].startswith("GPU ")]
        cut = [lines[n].split() if spaced else _cells(lines[n]) for n in row_numbers]
        fitting = [n for n, cells in enumerate(cut) if len(cells) == len(header)]
        broken += 0 if spaced else len(cut) - len(fitting)
        if fitting:
            columns = list(zip(*(cut[n] for n in fitting), strict=True))
            take(header, columns, ids, samples, [row_numbers[n] + 1 for n in fitting])
    yield from samples.items()
    if broken:
        yield Note(f"{broken} lines do not fit the header and were left out", Source(artifact.name), lost=True)
    if guessed:
        yield Note("no header: columns were told apart by their units", Source(artifact.name))


def _header(line: str) -> Header | None:
    if asked := _P["query"].search(line):
        return [(name.lower(), "") for name in asked["names"].split(",")]
    if line.startswith("#"):
        words = gpu_words()["dmon"]
        titles = line.lstrip("#").lower().split()
        if titles[:1] == ["entity"]:  # dcgmi dmon: a row begins with the kind of a thing and its number
            short = gpu_words()["dcgmi"]
            return [("entity", ""), ("index", ""), *(tuple(short.get(t.upper(), (t, ""))) for t in titles[1:])]
        if PROCESS in titles:
            return None  # rows are processes
        is_header = "gpu" in titles[:4] and sum(title in words for title in titles) > LEAST_COLUMNS
        return [tuple(words.get(title, (title, ""))) for title in titles] if is_header else None
    cells = [_P["header_cell"].match(cell) for cell in line.split(",")] if "," in line else []
    names = [(match[1].lower(), match[2] or "") for match in cells if match]
    if any(name == PROCESS for name, _ in names):
        return None
    ours = sum(name in gpu_words()["query"] or _P["reason"].match(name) is not None for name, _ in names)
    known = ours + sum(name in IDENTITY for name, _ in names)
    return names if len(names) == len(cells) and ours and known >= 2 else None


def _cells(line: str) -> list[str]:
    return cells_in(line) if '"' in line else line.split(",")


def take(
    header: Header, cells: Sequence[Sequence[str]], ids: dict[str, int], samples: GpuSamples, lines: Sequence[int]
) -> None:
    """Rows under one header, column by column."""
    by_name = {
        name: [c.lstrip() for c in column] if name in IDENTITY else column
        for (name, _), column in zip(header, cells, strict=True)
    }
    none = ("",) * len(lines)
    values: dict[str, Values] = {}
    for (name, unit), column in zip(header, cells, strict=True):
        if name in ("timestamp", "time"):
            dates = by_name.get("date", ("20000101",) * len(lines))
            stamps = column if name == "timestamp" else [f"{d} {t}" for d, t in zip(dates, column, strict=True)]
            values["time_s"] = each(stamps, seconds)
        elif name not in IDENTITY:
            put(values, name, column, unit)
    keys = _first_column(by_name, ("index", "pci.bus_id", "gpu_bus_id", "uuid", "gpu_uuid"), none)
    known = {
        key: (int(key) if _INDEX.fullmatch(key.strip()) else ids.setdefault(key, len(ids)), None)
        for key in dict.fromkeys(keys)
    }
    names, buses = (
        _first_column(by_name, titles, none) for titles in (("name", "gpu_name"), ("pci.bus_id", "gpu_bus_id"))
    )
    samples.add([known[key] for key in keys], values, lines, names, [bus.lower() for bus in buses])


def _first_column(by_name: dict[str, Sequence[str]], titles: Sequence[str], none: Sequence[str]) -> Sequence[str]:
    """The first of these columns that is there."""
    return next((by_name[title] for title in titles if title in by_name), none)


def _guess(line: str) -> Header:
    """Names for the columns of a headerless row, where the units leave no doubt; the rest stays unnamed."""
    units = {unit: list(names) for unit, names in gpu_words()["headerless"]["units"].items()}
    names: Header = []
    for place, cell in enumerate(cells_in(line)):
        unit = cell.rsplit(" ", 1)[-1]
        if units.get(unit) and cell[:1].isdigit():
            names.append((units[unit].pop(0), unit))
            continue
        candidates = (
            name
            for at, name, match in gpu_words()["headerless"]["cells"]
            if at in (place, -1) and re.fullmatch(match, cell)
        )
        names.append((next(candidates, f"unnamed_{place}"), ""))
    return names
