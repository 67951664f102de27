"""Tables that compare two things of one kind: a wide number format with a narrow one, a library's kernel with one's own.

What tells the two apart is the title of a column or the name of a row, by the tables of words (turns.toml): no column's place counts.
"""

from __future__ import annotations

from collections.abc import Iterator

from stallwise.evidence.catalog import autotune, run, stated
from stallwise.evidence.fact import WHOLE, Fact, Scope, Source
from stallwise.evidence.quantity import Quantity
from stallwise.evidence.reading import Cell, Rows
from stallwise.readers.text.scopes import BEFORE
from stallwise.readers.text.value import number_in
from stallwise.readers.text.words import listed, words_of
from stallwise.units import Unit, readings_of

MOST_ROWS = 400
LENGTHS = ("context", "tokens", "token", "seq", "sequence", "length", "len", "ctx")
SHORT_TOKENS = 4096.0  # what tasks called short stay below
LOST = 0.02  # points of accuracy that papers on eight bits report as noise


def compared_facts(rows: Rows, file: str, written: bool) -> Iterator[Fact]:
    """Facts of either comparison; nothing where a table holds neither."""
    if len(rows.columns) > 1 and 0 < len(rows) <= MOST_ROWS:
        yield from _formats(rows, file, written)
        yield from _libraries(rows, file, written) if not (sped := list(_columns(rows, file, written))) else sped


def _formats(rows: Rows, file: str, written: bool) -> Iterator[Fact]:
    """Accuracy by row in two formats: the row that lost most, its length, and what the short ones lost."""
    wide, narrow = (_titled(rows, name) for name in ("wide_formats", "narrow_formats"))
    if len(wide) != 1 or len(narrow) != 1:
        return
    length = next((i for i, c in enumerate(rows.columns) if set(words_of(c)) & set(LENGTHS)), None)
    pairs = [(_share(rows.cells[wide[0]][at]), _share(rows.cells[narrow[0]][at]), at) for at in range(len(rows))]
    lost = [(then - now, at, then, now) for then, now, at in pairs if then is not None and now is not None]
    if not lost or max(lost)[0] < LOST:
        return
    _, at, then, now = max(lost)
    source = Source(file, f"{rows.noun} {rows.places[at]}", written)
    yield Fact(stated.ACCURACY, then, source, Scope(run=BEFORE))
    yield Fact(stated.ACCURACY, now, source)
    yield Fact(stated.FORMAT, rows.columns[narrow[0]].lower(), source)
    if length is None:
        return
    tokens = [_tokens(cell) for cell in rows.cells[length]]
    if (here := tokens[at]) is not None:
        yield Fact(stated.TASK_CONTEXT, here, source)
    short = [gap for gap, row, *_ in lost if (size := tokens[row]) is not None and size <= SHORT_TOKENS]
    if short and (here or 0.0) > SHORT_TOKENS:
        yield Fact(stated.ACCURACY_SHORT_DROP, max(*short, 0.0), source)


def _titled(rows: Rows, words: str) -> list[int]:
    return [i for i, c in enumerate(rows.columns) if set(words_of(c)) & listed("turns.toml", words)]


def _share(cell: Cell) -> float | None:
    """A result between nothing and all, in points or as a part of one; a loss is none."""
    found = number_in(cell) if isinstance(cell, str) else (cell, "")
    if found is None or found[0] is None or isinstance(found[0], bool):
        return None
    value, points = float(found[0]), found[1] in ("%", "percent")
    if points or 3.0 < value <= 100.0:
        return value / 100.0
    return value if 0.0 <= value <= 1.0 else None


def _tokens(cell: Cell) -> float | None:
    if isinstance(cell, str):
        cell = cell.lstrip("<≤~ ")
        found = number_in(cell)
        return None if found is None else float(found[0]) * (1024.0 if found[1].lower() == "k" else 1.0)
    return float(cell) if cell is not None else None


def _libraries(rows: Rows, file: str, written: bool) -> Iterator[Fact]:
    """The row of a library and that of one's own kernel: both rates, or how many times as fast the own one is."""
    names = next((i for i, cells in enumerate(rows.cells) if any(_of_library(c) for c in cells)), None)
    if names is None:
        return
    found = [(at, cell) for at, cell in enumerate(rows.cells[names]) if isinstance(cell, str)]
    library = [at for at, cell in found if _of_library(cell)]
    own = [at for at, cell in found if not _of_library(cell)]
    if not library or not own:
        return
    rates = _measured(rows, Unit.FLOP_PER_S)
    times = _measured(rows, Unit.SECOND)
    last, best = own[-1], library[0]
    source = Source(file, f"{rows.noun} {rows.places[last]}", written)
    if rates and rates[last] > 0 and rates[best] > 0:
        yield Fact(run.FLOP_RATE, rates[last], source)
        yield Fact(stated.LIBRARY_FLOP_RATE, rates[best], source)
    yield from _sides(rows, last, source)
    if times and times[last] > 0 and times[best] > 0 and _is_fused(rows.cells[names][last]):
        yield Fact(stated.CUSTOM_SPEEDUP, times[best] / times[last], source)
        yield Fact(autotune.BEST, times[last], source)
        yield Fact(autotune.LIBRARY, times[best], source)


def _columns(rows: Rows, file: str, written: bool) -> Iterator[Fact]:
    """A column of times for the library path and one for the own kernel: the middle of their ratios."""
    timed = [
        i for i, c in enumerate(rows.columns) if any(u is Unit.SECOND for w in words_of(c) for u, _ in readings_of(w))
    ]
    own = [
        i
        for i in timed
        if _is_fused(rows.columns[i]) and not set(words_of(rows.columns[i])) & listed("turns.toml", "libraries")
    ]
    library = [i for i in timed if _of_library(rows.columns[i]) and i not in own]
    if len(own) != 1 or len(library) != 1:
        return
    pairs = zip(rows.cells[library[0]], rows.cells[own[0]], strict=True)
    ratios = sorted(a / b for a, b in pairs if isinstance(a, float) and isinstance(b, float) and b > 0)
    if ratios:
        last = len(rows) - 1
        source = Source(file, f"{rows.noun} {rows.places[last]}", written)
        yield Fact(stated.CUSTOM_SPEEDUP, ratios[len(ratios) // 2], source)
        yield from _sides(rows, last, source)


def _of_library(cell: Cell) -> bool:
    return isinstance(cell, str) and any(
        word.startswith(name) for word in words_of(cell) for name in listed("turns.toml", "libraries")
    )


def _is_fused(cell: Cell) -> bool:
    return isinstance(cell, str) and bool(set(words_of(cell)) & listed("turns.toml", "kernels"))


def _measured(rows: Rows, unit: Unit) -> dict[int, float]:
    """Row by row the value of the first column whose title names this unit."""
    for at, title in enumerate(rows.columns):
        found = [(u, f) for word in reversed(words_of(title)) for u, f in readings_of(word) if u is unit]
        if found:
            factor = found[0][1]
            return {row: float(c) * factor if isinstance(c, float) else 0.0 for row, c in enumerate(rows.cells[at])}
    return {}


def _sides(rows: Rows, at: int, source: Source) -> Iterator[Fact]:
    sides: dict[str, Quantity] = {"m": stated.GEMM_M, "n": stated.GEMM_N, "k": stated.GEMM_K}
    for title, cells in zip(rows.columns, rows.cells, strict=True):
        cell = cells[at]
        if title.strip().lower() in sides and isinstance(cell, float) and cell >= 1:
            yield Fact(sides[title.strip().lower()], cell, source, WHOLE)
