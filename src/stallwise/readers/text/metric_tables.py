"""Tables that the lines of a program are rows of, from the slots of its gauges."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from stallwise.evidence.fact import Source, Table
from stallwise.late import np
from stallwise.readers.text.expressions import Value
from stallwise.readers.text.metric_catalogue import TableForm

LARGEST_WHOLE = 1 << 62  # counts and ranks beyond this are damage, and no array holds them
Cell = str | int | float


class TableRows:
    """The rows of one table in the order of their lines."""

    def __init__(self, kind: str, form: TableForm) -> None:
        self.kind, self.form = kind, form
        self.rows: dict[tuple[Cell, ...], dict[str, Cell]] = {}
        self.times: Counter[tuple[Cell, ...]] = Counter()
        self.meta: dict[str, list[Value]] = {slot: [] for _, slot in form.meta.values()}
        self.first = 0

    def add_meta(self, slots: Mapping[str, Value]) -> None:
        """What any line says of the whole table."""
        for slot in self.meta.keys() & slots.keys():
            self.meta[slot].append(slots[slot])

    def add(self, slots: Mapping[str, Value], line: int, times: int = 1) -> None:
        """One row, of as many lines."""
        here: dict[str, Value] = {**slots, "@line": line + 1.0}
        cells: dict[str, Cell] = {
            name: cell_of(slot[1:] if slot[0] == "=" else here.get(slot), silent)
            for name, (slot, silent) in self.form.columns.items()
        }
        key = tuple(cells[name] for name in self.form.alike) or (len(self.rows),)
        keep, known = self.form.keep, self.rows.get(key)
        if known is None or keep == "last" or (keep in cells and cells[keep] > known[keep]):  # type: ignore[operator]
            self.rows[key] = cells
        self.times[key] += times
        self.first = min(self.first or line + 1, line + 1)

    def table(self, file: str) -> Iterator[Table]:
        """The table, where it has a row."""
        kept = list(self.rows)[-self.form.last :]
        if not kept:
            return
        counted = [name for name, (slot, _) in self.form.columns.items() if slot == "@count"]
        rows = [{**self.rows[key], **dict.fromkeys(counted, self.times[key])} for key in kept]
        columns = {name: np.array([row[name] for row in rows]) for name in self.form.columns}
        meta = {name: self._meta(how, slot) for name, (how, slot) in self.form.meta.items()}
        yield Table(self.kind, columns, Source(file, f"line {self.first}"), meta=meta)

    def _meta(self, how: str, slot: str) -> Cell:
        meta = self.meta[slot]
        if how == "count":
            return len(set(meta))
        if how == "places":  # counted from nought
            return max((int(n) + 1 for n in meta if isinstance(n, float) and n < LARGEST_WHOLE), default=0)
        return meta[0 if how == "first" else -1] if meta else ""


def cell_of(value: Value | None, silent: Cell) -> Cell:
    """A value as the column has it, by the kind of what stands in it where a line is silent."""
    if isinstance(silent, str):
        return silent if value is None else value if isinstance(value, str) else f"{value:g}"
    if not isinstance(value, float):
        return silent
    return value if isinstance(silent, float) else int(value) if abs(value) < LARGEST_WHOLE else silent
