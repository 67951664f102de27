"""What a load's author wrote down in tables: requests one by one, and sweeps of offered against achieved rate."""

from __future__ import annotations

from collections.abc import Iterator

from stallwise.evidence.artifact import Artifact
from stallwise.evidence.catalog import serving
from stallwise.evidence.evidence import Item
from stallwise.evidence.fact import Fact, Source
from stallwise.evidence.reading import Rows
from stallwise.readers.shapes.delimited import first_row, table_in

FORMAT = "table of a load"
_PLATEAU_GROWTH = 1.05  # more load that raises the rate by less than this has hit something
_OFFERED = ("offered_rps", "offered_qps", "request_rate", "offered_rate", "target_rps", "qps_offered")
_ACHIEVED = ("achieved_rps", "achieved_qps", "request_throughput", "achieved_rate", "rps", "throughput_rps")
_BUSY = ("gpu_util_pct", "gpu_util", "gpu_utilization_pct", "gpu_utilisation_pct", "sm_util_pct")
_PROMPT = ("prompt_tokens", "input_tokens", "input_len")


def recognises(name: str, head: bytes) -> bool:
    """Columns of requests or of a sweep."""
    columns = [c.lower() for c in first_row(head)]
    return len(columns) >= 2 and (_is_sweep(columns) or "prompt_tokens" in columns or any(map(_is_shared, columns)))


def read(artifact: Artifact) -> Iterator[Item]:
    """Facts of the load."""
    rows = table_in(artifact.text())
    if rows is not None:
        found = Rows(tuple(c.lower() for c in rows.columns), rows.cells, rows.places)
        yield from (_sweep if _is_sweep(found.columns) else _requests)(found, Source(artifact.name))


def _is_sweep(columns: tuple[str, ...] | list[str]) -> bool:
    return bool({*_OFFERED} & {*columns} and {*_ACHIEVED} & {*columns})


def _is_shared(column: str) -> bool:
    return column.startswith(("shared", "common")) and "token" in column


def _numbers(rows: Rows, names: tuple[str, ...]) -> list[float | None]:
    """The first of these columns that the table has."""
    cells = next((rows.column(name) for name in names if name in rows.columns), [None] * len(rows))
    return [cell if isinstance(cell, float) else None for cell in cells]


def _sweep(rows: Rows, source: Source) -> Iterator[Fact]:
    """The rate that more load no longer raises, and how busy the GPU is there."""
    every = zip(*(_numbers(rows, names) for names in (_OFFERED, _ACHIEVED, _BUSY)), strict=True)
    found = sorted(((o, a, busy) for o, a, busy in every if o and a), key=lambda row: row[0])
    for before, after in zip(found, found[1:], strict=False):
        if after[0] > before[0] and after[1] < _PLATEAU_GROWTH * before[1] and after[1] < after[0] / _PLATEAU_GROWTH:
            yield Fact(serving.PLATEAU_RATE, after[1], source)
            yield Fact(serving.OFFERED_RATE, found[-1][0], source)
            yield Fact(serving.ACHIEVED_RATE, found[-1][1], source)
            if after[2] is not None:
                yield Fact(serving.PLATEAU_GPU_BUSY, after[2] / 100, source)
            return


def _requests(rows: Rows, source: Source) -> Iterator[Fact]:
    if prompts := [v for v in _numbers(rows, _PROMPT) if v is not None]:
        yield Fact(serving.PROMPT_TOKENS, sum(prompts) / len(prompts), source, samples=len(prompts))
    if shared := [v for v in _numbers(rows, tuple(filter(_is_shared, rows.columns))) if v is not None]:
        yield Fact(serving.SHARED_PREFIX, min(shared), source, samples=len(shared))
