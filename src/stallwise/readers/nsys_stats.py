"""What `nsys stats` prints, as CSV or as aligned text under a ruler of dashes, many tables after one another: time by kernel
(cuda_gpu_kern_sum, gpukernsum) and by CUDA call of the host (cuda_api_sum)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile

from stallwise.evidence.artifact import Artifact
from stallwise.evidence.catalog import kernel as k
from stallwise.evidence.catalog import run
from stallwise.evidence.evidence import Item
from stallwise.evidence.fact import Fact, Note, Scope, Source
from stallwise.evidence.profile import UNKNOWN, Spent, profile_table
from stallwise.evidence.reading import Cell, Rows
from stallwise.readers._cells import count_of, number_of, seconds_in
from stallwise.readers._patterns import patterns
from stallwise.readers._profile_kinds import launches_in, seconds_by_kind
from stallwise.readers.records.plain_rows import plain_words
from stallwise.readers.shapes.aligned import spaced
from stallwise.readers.shapes.delimited import table_in

FORMAT = "nsys summary"
LABELLED = True  # labels and values: its words name what is measured, not what is wrong
CAPTURE = "nsys stats --report cuda_gpu_kern_sum --format csv run.nsys-rep > kernels.csv"
NANOSECOND = 1e-9
KERNELS, CALLS, RANGE = ("Instances", "Count"), "Num Calls", "Range"  # titles of the count; of a program's ranges
_P = patterns("nsys")


@dataclass(frozen=True)
class SummaryRow:
    """One line of a summary: seconds in all, how often, and of what."""

    total_s: float
    count: float
    name: str
    line: int = 0  # from one


@dataclass(frozen=True)
class Summary:
    """One table: the title of its count (Instances, Num Calls, Count, ...) says what is summed."""

    counted: str
    rows: tuple[SummaryRow, ...]
    named: str = ""  # the title of what is summed: Name, Operation; Range where the program's own ranges are


def recognises(name: str, head: bytes) -> bool:
    """A header line: a total, and a count of kernels or of CUDA calls."""
    text = head[:65536].decode("utf-8", "replace")
    titles = (*KERNELS, CALLS) if re.search(r"\bcu(?:da)?[A-Z]\w+", text) else KERNELS
    return any("Total Time" in line and any(title in line for title in titles) for line in text.splitlines())


def read(artifact: Artifact) -> Iterator[Item]:
    """Total and mean time of every kernel, and its share; what the host's waiting and allocating calls took."""
    tables = list(summaries(artifact.lines()))
    yield from _calls([row for table in tables if table.counted == CALLS for row in table.rows], artifact.name)
    summed = [table.rows for table in tables if table.counted in KERNELS and table.named != RANGE]
    kernels = [rows for rows in summed if rows and not all(_P["copy"].match(row.name) for row in rows)]
    if summed and not kernels:
        yield Note("the kernel summary is empty", Source(artifact.name))
    for rows in kernels[:1]:
        yield from kernel_facts(rows, artifact.name)
    yield from _category(tables, kernels, artifact.name)


def _category(tables: list[Summary], kernels: list[tuple[SummaryRow, ...]], file: str) -> Iterator[Item]:
    """All that was summed, as one profile: the host's CUDA calls, kernels, and operations on memory (once, by time)."""
    calls = next((t.rows for t in tables if t.counted == CALLS and any(_P["cuda"].match(r.name) for r in t.rows)), ())
    copies = next((t.rows for t in tables if t.rows and all(_P["copy"].match(row.name) for row in t.rows)), ())
    ran = kernels[0] if kernels else ()
    host = [Spent(_plain(r.name), r.total_s, 0.0, r.total_s, r.count, r.line) for r in calls]
    device = [Spent(r.name, 0.0, r.total_s, 0.0, r.count, r.line, r in copies) for r in (*ran, *copies)]
    rows = [*host, *device]
    if rows:
        yield profile_table(
            rows, Source(file), of="CUDA calls" if calls else "kernels and copies" if copies else "kernels",
            host_s=sum(r.total_s for r in calls) or UNKNOWN, device_s=sum(r.device_s for r in device) or UNKNOWN,
            doing=seconds_by_kind(host), launches=launches_in(rows),
        )  # fmt: skip


def kernel_facts(rows: Sequence[SummaryRow], file: str) -> Iterator[Item]:
    """Total and mean time of every kernel, and its share of all."""
    whole = sum(row.total_s for row in rows)
    for row in rows:
        scope, source = Scope(kernel=row.name), Source(file, f"line {row.line}" if row.line else "")
        yield Fact(k.TOTAL_TIME, row.total_s, source, scope, samples=count_of(row.count))
        yield Fact(k.TIME, row.total_s / max(row.count, 1.0), source, scope, samples=count_of(row.count))
        if whole:
            yield Fact(k.TIME_SHARE, row.total_s / whole, source, scope)


def _calls(rows: list[SummaryRow], file: str) -> Iterator[Item]:
    """The synchronising calls: time each, and who they are. The allocating ones: how many a launch, how much of all the time."""
    yield from _allocations(rows, file)
    waits = [row for row in rows if _P["waits"].fullmatch(_plain(row.name))]
    for worst in [max(waits, key=lambda row: row.total_s)] if waits else ():
        source = Source(file, f"line {worst.line}")
        yield Fact(run.SYNC_TIME, worst.total_s / max(worst.count, 1.0), source, samples=count_of(worst.count))
        yield Fact(run.SYNC_CALLER, worst.name, source, samples=count_of(worst.count))


def _allocations(rows: list[SummaryRow], file: str) -> Iterator[Item]:
    """A caching allocator asks the driver hardly ever once it is warm, whatever the number of launches."""
    taken, freed = ([row for row in rows if _P[call].fullmatch(_plain(row.name))] for call in ("allocates", "frees"))
    asked = [*taken, *freed]
    launches = sum(row.count for row in rows if _P["launches"].match(_plain(row.name)))
    whole_s = sum(row.total_s for row in rows)
    if not asked or launches <= 0 or whole_s <= 0:
        return
    source = Source(file, f"line {max(asked, key=lambda row: row.total_s).line}")
    calls = min(sum(row.count for row in some) for some in (taken, freed))  # memory only taken: a model is loaded
    yield Fact(run.ALLOCS_PER_LAUNCH, calls / launches, source, samples=count_of(calls))
    yield Fact(run.ALLOC_CALL_SHARE, sum(row.total_s for row in asked) / whole_s, source, samples=count_of(calls))


def _plain(name: str) -> str:
    """Without the version that newer toolkits put behind a call."""
    return name.split("_v")[0]


def summaries(lines: list[str]) -> Iterator[Summary]:
    """Every summary of times in the order they stand."""
    for number, line in enumerate(lines):
        if "Total Time" in line:
            block = [
                (at, text) for at, text in takewhile(lambda x: x[1].strip(), enumerate(lines[number:], number + 1))
            ]
            rows = table_in("\n".join(text for _, text in block)) if "," in line else spaced(block)
            found = _summary(rows, number if "," in line else 0) if rows is not None else None
            if found is not None:
                yield found


def _summary(rows: Rows, above: int) -> Summary | None:
    """The total, the count beside it, and the name, which stands last."""
    at = next((i for i, title in enumerate(rows.columns) if title.startswith("Total Time")), None)
    if at is None or at + 1 >= len(rows.columns):
        return None
    scale = seconds_in(plain_words(rows.columns[at])) or NANOSECOND
    totals, counts = ([_number(cell) for cell in rows.cells[i]] for i in (at, at + 1))
    summary_rows = [
        SummaryRow(total * scale, count, str(name), above + place)
        for total, count, name, place in zip(totals, counts, rows.cells[-1], rows.places, strict=True)
        if total is not None and count is not None
    ]
    return Summary(rows.columns[at + 1], tuple(summary_rows), rows.columns[-1])


def _number(cell: Cell) -> float | None:
    return number_of(_P["apart"].sub("", cell) if isinstance(cell, str) else cell)
