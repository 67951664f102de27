"""What a shape gives: values under their keys, and rows under their columns, before anybody says what they mean."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from stallwise.late import np
from stallwise.units import readings_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

Cell = float | str | bool | None
_WITH_UNIT = re.compile(r"^\s*([-+]?\d[\d,]{0,30}(?:\.\d{1,30})?)\s?°?([A-Za-zµ%][\w%µ]{0,9}(?:/[A-Za-z]{1,9})?)\s*$")
_AMBIGUOUS_SUFFIXES = (
    "x",
    "X",
    "k",
    "K",
    "m",
    "M",
    "b",
    "B",
    "G",
    "T",
    "d",
    "h",
)  # behind a number they are as often no unit


@dataclass(frozen=True, slots=True)
class Reading:
    """One value as it was written, under the keys that stand above it, outermost first."""

    path: tuple[str, ...]
    value: float | str | bool
    unit: str = ""  # as written beside the value
    place: str = ""  # "line 12", "observed.ttft"
    in_prose: bool = False  # in a sentence, where the words around a number need not be its name
    after: str = ""  # in a sentence: the words that follow


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """Records of one shape: columns with their names, column by column, and the line or index of each record."""

    columns: tuple[str, ...]
    cells: tuple[list[Cell], ...]
    places: list[int]
    path: tuple[str, ...] = ()  # what stands above the table
    noun: str = "line"
    notes: tuple[str, ...] = field(default=())
    _numbers: dict[int, NDArray[np.float64] | None] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.places)

    def numbers(self, at: int) -> NDArray[np.float64] | None:
        """A column as numbers, where every cell is one: looked through once, whoever asks."""
        if at not in self._numbers:
            cells = self.cells[at]
            self._numbers[at] = np.array(cells) if set(map(type, cells)) == {float} else None
        return self._numbers[at]

    def count(self, at: int) -> int:
        """How many cells of a column are numbers."""
        return len(self) if self.numbers(at) is not None else sum(isinstance(c, float) for c in self.cells[at])

    def column(self, name: str) -> list[Cell]:
        """The cells under this name."""
        return self.cells[self.columns.index(name)]


Shape = Reading | Rows
Wanted = Callable[[str, str, bool], bool]  # key, unit and whether no sign stands between the key and its number


Points: TypeAlias = "NDArray[np.float64]"  # a row a point


def points_of(rows: Sequence[tuple[float, float, float]]) -> Points:
    """The same in columns."""
    return np.array(rows, dtype=float).reshape(-1, 3)


@dataclass(slots=True)
class Curve:
    """What one key printed again and again: step (or second), number as printed, line."""

    key: str
    unit: str = ""
    points: Points = field(default_factory=lambda: points_of([]))
    bare: bool = False  # no sign stands between the key and its number
    epoch: bool = False  # the line sums up an epoch
    rank: int | None = None


@dataclass(frozen=True, slots=True)
class Printed:
    """A log or a table of steps. Asked for the keys that mean something it gives their courses, and reads no others."""

    file: str
    curves: Callable[[Wanted], Iterable[Curve]]
    over: str = "step"  # or time_s
    table: bool = False  # columns with titles, not lines of a log
    variants: bool = False  # columns of one quantity are variants of it
    noun: str = "line"  # what a place in it counts
    by_clock: Callable[[], Curve | None] | None = None  # seconds a step, where no key tells them


def rows_of(columns: list[str], records: list[list[Cell]], places: list[int], **more: object) -> Rows:
    """Rows from records; short ones are filled with nothing."""
    width = len(columns)
    filled = [(*r[:width], *([None] * (width - len(r)))) for r in records]
    return rows_in(
        columns, [list(c) for c in zip(*filled, strict=True)] if filled else [[] for _ in columns], places, **more
    )


def rows_in(columns: list[str], cells: list[list[Cell]], places: list[int], **more: object) -> Rows:
    """Rows from columns; a unit that every cell of a column bears goes to its title."""
    titles = list(columns)
    for at, column in enumerate(cells):
        titles[at], cells[at] = _unit_to_title(titles[at], column)
    return Rows(tuple(titles), tuple(cells), places, **more)  # type: ignore[arg-type]


def _unit_to_title(title: str, cells: list[Cell]) -> tuple[str, list[Cell]]:
    """`power: 699.2 W, 700.1 W` as `power (W): 699.2, 700.1`."""
    first = next((c for c in cells if c is not None), None)
    if not isinstance(first, str) or _WITH_UNIT.match(first) is None:
        return title, cells
    known = {c: _WITH_UNIT.match(c) if isinstance(c, str) else None for c in dict.fromkeys(cells)}
    found = [known[c] for c in cells]
    units = {m[2] for m in found if m is not None}
    if len(units) != 1 or any(m is None for m, c in zip(found, cells, strict=True) if c is not None):
        return title, cells
    unit = units.pop()
    if not readings_of(unit) or unit in _AMBIGUOUS_SUFFIXES:
        return title, cells
    named = title.rstrip().endswith((f"({unit})", f"[{unit}]"))
    return title if named else f"{title} ({unit})", [None if m is None else float(m[1].replace(",", "")) for m in found]


_WORDED = frozenset("abcdefghjklmopqrstuvwxyzABCDEFGHJKLMOPQRSTUVWXYZ({[</")  # begins no number, neither nan nor inf


def cell_of(text: str) -> Cell:
    """A written cell: a number where it is one, nothing where it is empty, else its words."""
    plain = text.strip().strip('"')
    if not plain or plain in ("-", "N/A", "n/a", "[N/A]", "None", "null"):
        return None
    if plain[0] in _WORDED:
        return plain  # most cells that are words
    try:
        return float(plain)
    except ValueError:
        pass
    if plain[0].isdigit() and "," in plain:
        try:
            return (
                float(plain.replace(",", "")) if all(len(p) == 3 for p in plain.split(".")[0].split(",")[1:]) else plain
            )
        except ValueError:
            return plain
    return plain


def cells_of(texts: Sequence[str]) -> list[Cell]:
    """A column of written cells, each as `cell_of` has it."""
    import msgspec  # several times as fast as a loop; a sentence has no columns

    try:
        numbers: list[Cell] = msgspec.json.decode(f"[{','.join(texts)}]", type=list[float])
        if len(numbers) == len(texts):
            return numbers
    except (msgspec.DecodeError, UnicodeError):
        pass
    known = {text: cell_of(text) for text in dict.fromkeys(texts)}
    return [known[text] for text in texts]
