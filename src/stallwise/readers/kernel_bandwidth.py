"""Inductor's table of its Triton kernels: milliseconds, gigabytes and the rate of each (TORCHINDUCTOR_PROFILE)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from stallwise.evidence.artifact import Artifact
from stallwise.evidence.evidence import Item
from stallwise.evidence.fact import Source, Table
from stallwise.evidence.profile import Spent, profile_table
from stallwise.readers._patterns import patterns

FORMAT = "Triton kernel bandwidth"
LABELLED = True
CAPTURE = "TORCHINDUCTOR_PROFILE=1 TORCHINDUCTOR_PROFILE_OUTPUT=kernels.txt python train.py"
GIGABYTE = 1e9
FEWEST = 3  # rows
MOST_TABLES = 4
_P = patterns("nsys")


def recognises(name: str, head: bytes) -> bool:
    """Rows of a time, a size, a rate and a kernel."""
    text = head[:65536].decode("utf-8", "replace")
    return "GB/s" in text and sum(_P["moved"].match(line) is not None for line in text.splitlines()) >= FEWEST


def read(artifact: Artifact) -> Iterator[Item]:
    """Each run of the module as a profile of its own; the same module is often run several times."""
    rows: list[tuple[Spent, float]] = []
    tables = 0
    for number, line in enumerate(artifact.lines(), 1):
        if found := _P["moved"].match(line):
            seconds, size = float(found["ms"]) * 1e-3, float(found["gb"]) * GIGABYTE
            rows.append((Spent(found["name"], 0.0, seconds, 0.0, 1.0, number), size))
        elif rows and (not line.strip() or line.startswith("=")):
            tables += 1
            if tables <= MOST_TABLES:
                yield _table(rows, artifact.name)
            rows = []
    if rows and tables < MOST_TABLES:
        yield _table(rows, artifact.name)


def _table(rows: Sequence[tuple[Spent, float]], file: str) -> Table:
    seconds, size = sum(row.device_s for row, _ in rows), sum(moved for _, moved in rows)
    best = max((moved / row.device_s for row, moved in rows if row.device_s > 0), default=0.0)
    table = profile_table(
        [row for row, _ in rows], Source(file, f"line {rows[0][0].line}"), of="kernels", device_s=seconds
    )
    table.meta.update(moved_bytes=size, best_rate=best)
    return table
