"""Rows into meaning: tables of pairs, columns of quantities, and which of two rows is the one in question."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING

from stallwise.evidence.fact import WHOLE, Fact, Scope, Source
from stallwise.evidence.file_cache import cached_for_file
from stallwise.evidence.reading import Cell, Reading, Rows, rows_of
from stallwise.late import np
from stallwise.readers.text.entries import entries
from stallwise.readers.text.name import Name, name, without_unit
from stallwise.readers.text.scopes import BEFORE, EXPECTED, axis_of, outcome_of, scope_of
from stallwise.readers.text.value import all_in_si, all_plausible, flag_in, in_si, number_in, plausible
from stallwise.readers.text.words import is_statistic, word_table, words_of
from stallwise.units import Unit, readings_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

MOSTLY = 0.75  # of the titles are statistics
WHOLE_JOB_RATES = ("run.samples_per_s", "run.tokens_per_s")  # they grow with the GPUs that share the work
WORKERS = ("gpus", "layout.nodes")
MENTION = "mention"  # what a row is that sentences made: its columns are quantities, its numbers in SI
MOST_VARIANTS = 12  # rows of a comparison; more are samples
MOST_MEASURED = 1000  # things that one run is told of; more are samples
LEAST_ALIKE = 3  # lines: two may be two readings of one thing
KEYS_NAMED = 0.5  # share of the first column that must name quantities to be a column of keys
WORSE = 0.02  # relative difference below which two rows are alike


@dataclass(frozen=True, eq=False)
class Column:
    """One named column: a quantity, its values in SI by row, and the words that tell it from its twins."""

    named: Name
    label: str
    cells: list[float | str | None] | NDArray[np.float64]  # numbers alone as an array, NaN where one is none

    @cached_property
    def values(self) -> list[float | str | None]:
        """Row by row, None where a cell says nothing that can be this quantity."""
        if isinstance(self.cells, list):
            return self.cells
        return [v if v == v else None for v in self.cells.tolist()]

    @cached_property
    def numbers(self) -> NDArray[np.float64]:
        """Its values as numbers, NaN where one is none."""
        if not isinstance(self.cells, list):
            return self.cells
        return np.array([v if isinstance(v, float) else np.nan for v in self.cells], dtype=float)


def as_pairs(rows: Rows) -> list[Reading]:
    """A table of pairs as single readings; empty where the table is none."""
    heads = [" ".join(words_of(c)) for c in rows.columns]
    words = word_table("scopes.toml")["pairs"]
    keys = [i for i, h in enumerate(heads) if h in words["key"]]
    values = [i for i, h in enumerate(heads) if h in words["value"]]
    units = [i for i, h in enumerate(heads) if h in words["unit"]]
    if keys and values and keys[0] != values[0]:
        return [
            Reading(
                (str(key),), value, _text(rows.cells[units[0]][at]) if units else "", f"{rows.noun} {rows.places[at]}"
            )
            for at, (key, value) in enumerate(zip(rows.cells[keys[0]], rows.cells[values[0]], strict=True))
            if key is not None and value is not None and len(rows.columns) - len(units) <= 3
        ]
    return _statistics(rows) or _keys_first(rows) or _untitled(rows)


def _statistics(rows: Rows) -> list[Reading]:
    """A line for each quantity, with its mean, extremes and percentiles: the middle one is its value, the 99th its tail."""
    pairs, titles = word_table("scopes.toml")["pairs"], [" ".join(words_of(c)) for c in rows.columns]
    kinds = [re.fullmatch(pairs["statistic"], title) is not None for title in titles[1:]]
    if len(rows.columns) < 3 or sum(kinds) < MOSTLY * len(kinds):
        return []
    found = []
    middle, tail = (next((titles.index(t) for t in pairs[kind] if t in titles), None) for kind in ("middle", "tail"))
    for at, key in enumerate(rows.cells[0]):
        for column, prefix in ((middle, ""), (tail, "p99 ")):
            cell = rows.cells[column][at] if column is not None else None
            if isinstance(key, str) and cell is not None:
                found.append(Reading((f"{prefix}{key}",), cell, "", f"{rows.noun} {rows.places[at]}"))
    return found


def _keys_first(rows: Rows) -> list[Reading]:
    """A first column of names and columns of before, now or expected."""
    scoped = [i for i, c in enumerate(rows.columns) if i and scope_of(words_of(c))]
    if len(rows.columns) < 2 or len(scoped) < len(rows.columns) - 1:
        return []
    first = [c for c in rows.cells[0] if isinstance(c, str)]
    if len(first) < len(rows):
        return []
    if sum(name((c,), "", False) is not None for c in first) < KEYS_NAMED * len(first):
        return []
    return [
        Reading((rows.columns[i], str(rows.cells[0][at])), cell, "", f"{rows.noun} {rows.places[at]}")
        for at in range(len(rows))
        for i in scoped
        if (cell := rows.cells[i][at]) is not None
    ]


def _untitled(rows: Rows) -> list[Reading]:
    """Two columns of names and values whose titles say nothing, or are a pair themselves; or one row below its titles."""
    if len(rows) == 1 and len(rows.columns) > 2:
        cells = zip(rows.columns, (column[0] for column in rows.cells), strict=True)
        return [
            Reading((title,), cell, "", f"{rows.noun} {rows.places[0]}") for title, cell in cells if cell is not None
        ]
    if len(rows.columns) != 2:
        return []
    title, value_titles = rows.columns[1], word_table("scopes.toml")["pairs"]["value"]
    if title.strip() and number_in(title) is None and " ".join(words_of(title)) not in value_titles:
        return []
    pairs = [*zip(*rows.cells, strict=True)]
    pairs = [(key, value) for key, value in pairs if isinstance(key, str) and value is not None]
    if number_in(title) is not None:
        pairs = [(rows.columns[0], title), *pairs]
    if sum(name((key,)) is not None for key, _ in pairs) < KEYS_NAMED * max(len(rows), 1):
        return []
    return [Reading((key,), value, "", f"{rows.noun} {rows.places[0]}") for key, value in pairs]


def alike_lines(readings: list[Reading]) -> tuple[list[Reading], list[Rows]]:
    """A program's lines that put other numbers under the same keys are records; what is left over stays as it was."""
    by_place: dict[str, list[Reading]] = {}
    for reading in readings:
        by_place.setdefault(reading.place, []).append(reading)
    by_keys: dict[tuple[tuple[tuple[str, ...], str], ...], list[str]] = {}
    for place, line in by_place.items():
        keys = tuple((r.path, r.unit) for r in line)
        if place.startswith("line ") and len(keys) > 1 and len({path for path, _ in keys}) == len(keys):
            by_keys.setdefault(keys, []).append(place)
    tables, taken = [], set()
    for keys, places in by_keys.items():
        if len(places) >= LEAST_ALIKE:
            taken.update(places)
            columns = [" ".join(path) + (f" ({unit})" if unit else "") for path, unit in keys]
            cells: list[list[Cell]] = [[r.value for r in by_place[place]] for place in places]
            numbers = [int(m[0]) if (m := re.search(r"\d+", place)) else at for at, place in enumerate(places, 1)]
            tables.append(rows_of(columns, cells, numbers))
    return [r for r in readings if r.place not in taken], tables


def turned(rows: Rows) -> Rows:
    """A table whose first column names what is measured and whose other columns are runs, as one row a run; else itself.

    The first column does so where half of it has a name, or where the others change their unit from row to row.
    """
    rows = _without_differences(rows)
    if not 3 <= len(rows.columns) <= MOST_VARIANTS or not 2 <= len(rows) <= MOST_MEASURED:
        return rows
    first = [c for c in rows.cells[0] if isinstance(c, str)]
    named = sum(name((c,)) is not None for c in first)
    titles = sum(name((c,)) is not None for c in rows.columns[1:])
    keyed = named >= KEYS_NAMED * len(first) or (named and all(_of_many_units(c) for c in rows.cells[1:]))
    if len(first) < len(rows) or not keyed or titles >= len(rows.columns) - 1:
        return rows  # "busy" may name a run and a share; where all titles are names, they are
    records = [[title, *cells] for title, cells in zip(rows.columns[1:], rows.cells[1:], strict=True)]
    return rows_of(["run", *first], records, list(range(2, len(rows.columns) + 1)), path=rows.path, noun="column")


def _without_differences(rows: Rows) -> Rows:
    """Beside two runs and more, a column that only compares them is left out."""
    kept = [
        i
        for i, title in enumerate(rows.columns)
        if i == 0 or " ".join(without_unit(title)[0]) not in word_table("scopes.toml")["derived"]
    ]
    if len(kept) == len(rows.columns) or len(kept) < 3:
        return rows
    records = [[rows.cells[i][at] for i in kept] for at in range(len(rows))]
    return rows_of([rows.columns[i] for i in kept], records, list(rows.places), path=rows.path, noun=rows.noun)


def _of_many_units(cells: Sequence[Cell]) -> bool:
    """Milliseconds in one row and gigabytes in the next: each row is of something else."""
    units = {p[1] for c in cells if isinstance(c, str) and (p := number_in(c)) is not None and readings_of(p[1])}
    return len({unit for u in units for unit, _ in readings_of(u)}) > 1


def _text(cell: Cell) -> str:
    return "" if cell is None else str(cell)


@cached_for_file
def named_columns(rows: Rows) -> tuple[Column, ...]:
    """Columns that have a name, with their cells in SI. Several ask for those of the same table."""
    from stallwise.readers.text import in_service

    found = _columns(rows, "")
    names = {c.named.quantity.name for c in found}
    if not names & in_service.SIGNS:
        return tuple(found)
    own = {c.label for c in found}
    found += [c for c in _columns(rows, "request") if c.label not in own]  # "p99 latency", "errors": of its requests
    meant = (in_service.of_column(c.named.quantity, c.label, names) for c in found)
    return tuple(replace(c, named=c.named._replace(quantity=q)) for c, q in zip(found, meant, strict=True))


def _columns(rows: Rows, of: str) -> list[Column]:
    """Those with a name, as parts of what they are `of`; a statistic alone is of its time."""
    found: list[Column] = []
    for at, (title, cells) in enumerate(zip(rows.columns, rows.cells, strict=True)):
        if _counts_steps(rows, at):
            continue
        numbers = rows.numbers(at)
        texts = [c for c in cells if isinstance(c, str)] if numbers is None else []
        distinct = dict.fromkeys(texts)
        unit = next((p[1] for p in map(number_in, distinct) if p and p[1]), "")
        path = (*rows.path, title)
        if (
            rows.noun == MENTION and (known := entries().get(title)) is not None
        ):  # sentences were named before they were rows
            found.append(Column(Name(known.quantity, 1.0), title, list(cells)))
            continue
        statistic = of and any(map(is_statistic, without_unit(title)[0][:1]))
        asked = f"latency {title}" if statistic else title
        in_words, in_numbers = (_name_of(rows, of, asked, unit, worded) for worded in (True, False))
        if in_words is None and in_numbers is None:
            continue  # such as a column of moments
        worded = bool(texts) and len(texts) == sum(c is not None for c in cells) and not all(map(number_in, distinct))
        named = in_words if worded else in_numbers
        if named is None:
            continue
        label = " ".join(words_of(title))
        if numbers is not None:
            found.append(Column(named, label, _all_si(named, numbers)))
        else:
            known_cells = {c: _si(path, named, c) for c in dict.fromkeys(cells)}
            found.append(Column(named, label, [known_cells[c] for c in cells]))
    return found


def _name_of(rows: Rows, of: str, title: str, unit: str, worded: bool) -> Name | None:
    path = (*rows.path, of, title) if of else (*rows.path, title)
    named = name(path, unit, worded) or (name((title,), unit, worded) if rows.path else None)
    if named is None and unit and len(rows.columns) <= 3:
        named = name((*path, unit), unit)
    return named


def _all_si(named: Name, numbers: NDArray[np.float64]) -> NDArray[np.float64]:
    values = numbers if named.quantity.unit is Unit.FLAG else all_in_si(named, numbers)
    return np.where(all_plausible(named.quantity, values), values, np.nan)


def _si(path: tuple[str, ...], named: Name, cell: Cell) -> float | str | None:
    if cell is None:
        return None
    if isinstance(cell, str):
        if named.quantity.unit is Unit.TEXT:
            return cell
        if named.quantity.unit is Unit.FLAG:
            return flag_in(cell)
        parsed = number_in(cell)
        if parsed is None:
            return None
        own = name(path, parsed[1]) if parsed[1] else named
        own = own if own is not None and own.quantity is named.quantity else named
        number = in_si(own, parsed[0])
    else:
        number = float(cell) if named.quantity.unit is Unit.FLAG else in_si(named, float(cell))
    return number if plausible(named.quantity, number) else None


def contrast_facts(rows: Rows, file: str, stated: bool) -> Iterator[Fact]:
    """Facts of the row in question as they are, of its better twin as `before`; nothing where rows are samples."""
    if not 2 <= len(rows) <= MOST_VARIANTS or _indexed(rows):
        return
    columns = named_columns(rows)
    if not columns:
        return
    pair = _by_outcome(rows) or _by_load(columns) or _by_worse(rows, columns) or _by_scope(rows)
    if pair is None:
        return
    good, bad = pair
    seen: set[tuple[str, int]] = set()
    for column in columns:
        for at, scope in ((good, Scope(run=BEFORE)), (bad, WHOLE)):
            value = column.values[at]
            if value is None or (column.named.quantity.name, at) in seen or column.named.scope == EXPECTED:
                continue
            if at == good and isinstance(value, str) and value == column.values[bad]:
                continue
            seen.add((column.named.quantity.name, at))
            yield Fact(column.named.quantity, value, _source(rows, at, file, stated), scope)


def _indexed(rows: Rows) -> bool:
    """Rows that number ranks, cards, stages, layers or the steps of a run are samples, not variants."""
    return any(
        (axis_of(title) in ("rank", "gpu", "stage", "expert", "layer") and rows.numbers(at) is not None)
        or _counts_steps(rows, at)
        for at, title in enumerate(rows.columns)
    )


def _counts_steps(rows: Rows, at: int) -> bool:
    """A column named after steps that rises in whole numbers says which step a row is, not how long one took."""
    if axis_of(rows.columns[at]) != "step" or len(rows) <= 2 or (numbers := rows.numbers(at)) is None:
        return False
    return bool(np.all(np.diff(numbers) > 0) and np.all(numbers == np.floor(numbers)) and np.all(np.isfinite(numbers)))


def _by_load(columns: Sequence[Column]) -> tuple[int, int] | None:
    """A service under its least and its most load."""
    from stallwise.readers.text import in_service

    loads = (c.numbers for c in columns if c.named.quantity.name in in_service.LOADS[:2])
    return next(filter(None, map(in_service.least_and_most, loads)), None)


def _by_outcome(rows: Rows) -> tuple[int, int] | None:
    """One row went well and one did not."""
    for cells in rows.cells:
        kinds = [outcome_of(c) if isinstance(c, str) else "" for c in cells]
        if "bad" in kinds and any(k != "bad" for k in kinds):
            return max(i for i, k in enumerate(kinds) if k != "bad"), kinds.index("bad")
    return None


def _by_scope(rows: Rows) -> tuple[int, int] | None:
    """Rows that call themselves before and now."""
    for cells in rows.cells:
        scopes = [scope_of(words_of(c)) if isinstance(c, str) else "" for c in cells]
        if BEFORE in scopes and any(s != BEFORE for s in scopes):
            return scopes.index(BEFORE), max(i for i, s in enumerate(scopes) if s != BEFORE)
    return None


def _by_worse(rows: Rows, columns: tuple[Column, ...]) -> tuple[int, int] | None:
    """The pair of rows, alike in their other words, between which an outcome falls most."""
    judged = [
        (c, better) for c in columns if (better := entries()[c.named.quantity.name].quantity.better) and _moves(c)
    ]
    if not judged:
        return None
    groups = _groups(rows)
    best: tuple[float, int, int] | None = None
    for column, better in judged:
        shared = _workers(columns, len(rows)) if column.named.quantity.name in WHOLE_JOB_RATES else [1.0] * len(rows)
        for group in groups:
            numbers = [(v / shared[at], at) for at in group if isinstance(v := column.values[at], float) and v > 0]
            if len(numbers) < 2:
                continue
            low, high = min(numbers), max(numbers)
            good, bad = (low, high) if better == "lower" else (high, low)
            drop = high[0] / low[0]
            if best is None or drop > best[0]:
                best = drop, good[1], bad[1]
    return (best[1], best[2]) if best is not None and best[0] > 1.0 + WORSE else None


def _workers(columns: tuple[Column, ...], count: int) -> list[float]:
    """How many GPUs or nodes a row's rate is shared by: 300 samples/s of eight are worse than 100 of one."""
    counts = next((c.values for c in columns if c.named.quantity.name in WORKERS), [])
    return [float(v) if isinstance(v, float) and v > 0 else 1.0 for v in counts] or [1.0] * count


def _moves(column: Column) -> bool:
    numbers = [v for v in column.values if isinstance(v, float)]
    return len(numbers) >= 2 and any(abs(a - b) > WORSE * max(abs(a), abs(b)) for a, b in pairwise(numbers))


def _groups(rows: Rows) -> list[list[int]]:
    """Rows that differ in one text column at most: all, or by the column with most repeated words."""
    texts = [cells for cells in rows.cells if cells and all(isinstance(c, str) and not _says_when(c) for c in cells)]
    repeated = [cells for cells in texts if 1 < len(set(map(str, cells))) < len(cells)]
    if not repeated or len(texts) < 2:
        return [list(range(len(rows)))]
    first = repeated[0]
    return [[i for i, c in enumerate(first) if c == label] for label in dict.fromkeys(first)]


def _says_when(cell: str) -> bool:
    """ "before", "run 2, now": of which moment a row is; rows of two moments are compared."""
    return bool(scope_of(words_of(cell)))


def twin_facts(rows: Rows, file: str, stated: bool) -> Iterator[Fact]:
    """Two columns of one quantity (bf16_accuracy, fp8_accuracy): the row where they lie farthest apart tells most."""
    if len(rows) > MOST_VARIANTS:
        return
    columns = named_columns(rows)
    by_quantity: dict[str, list[Column]] = {}
    for column in columns:
        by_quantity.setdefault(column.named.quantity.name, []).append(column)
    for name_, twins in by_quantity.items():
        better = entries()[name_].quantity.better
        if len(twins) != 2 or not better:
            continue
        gaps = [
            (max(a, b) / max(min(a, b), 1e-12), at)
            for at, (a, b) in enumerate(zip(twins[0].values, twins[1].values, strict=True))
            if isinstance(a, float) and isinstance(b, float)
        ]
        if not gaps or max(gaps)[0] < 1.0 + WORSE:
            continue
        at = max(gaps)[1]
        source = _source(rows, at, file, stated)
        pair = sorted(twins, key=lambda c: float(c.values[at] or 0), reverse=better == "higher")
        for column, scope in zip(pair, (Scope(run=BEFORE), WHOLE), strict=True):
            yield Fact(column.named.quantity, column.values[at] or 0.0, source, scope)
        for column in columns:
            value = column.values[at]
            if column not in twins and value is not None:
                yield Fact(column.named.quantity, value, source)


def _source(rows: Rows, at: int, file: str, stated: bool) -> Source:
    if rows.noun == MENTION and rows.path:  # the sentence that all of them stand in
        return Source(file, rows.path[0], stated)
    return Source(file, f"{rows.noun} {rows.places[at]}", stated)
