"""Lines of a log that print numbers under keys: the step, the rank and the values of each, whatever program printed them.

Lines of one skeleton print their numbers in the same places, so that keys and units are looked up once for all of them. How
programs put a key, a step, a rate or a list into a line is data (patterns/logged.toml), asked in its order.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from math import isfinite
from typing import Any, NamedTuple

from stallwise.evidence.number_columns import TOKEN, Column
from stallwise.evidence.reading import Wanted
from stallwise.evidence.skeletons import LONGEST, Skeletons
from stallwise.late import np
from stallwise.readers._patterns import entries, patterns
from stallwise.units import readings_of

_P = patterns("logged")
_HOLDS: dict[str, tuple[str, ...]] = {
    name: tuple(entry.get("holds", ("",))) for name, entry in entries("logged").items()
}
_KEYED = [(_P[name], entry, _HOLDS[name]) for name, entry in entries("logged").items() if "tells" in entry]
_LISTED = re.compile(r"[^, ]+")  # one number of a list
HEAD = 120  # characters before which a line names its rank
SHORT = ("k", "K", "M", "B", "G")  # thousands and so on


class Key(NamedTuple):
    """What stands before a number, and its unit."""

    key: str
    unit: str
    bare: bool = False  # no sign stands between the two


class Number(NamedTuple):
    """A number and where it starts; -1 where it stands nowhere as such."""

    number: float
    place: int


@dataclass(slots=True)
class Line:
    """What one line said. Three numbers of a step are the epoch, the step in it and the steps an epoch."""

    step: list[Number]
    rank: list[Number]
    epoch: bool = False  # sums up an epoch
    keys: list[Key] = field(default_factory=list)
    values: list[Number] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Records:
    """Lines that print the same keys."""

    lines: list[int]  # indices
    like: Line
    numbers: Column  # a row a line: its values, its step, its rank

    @property
    def values(self) -> Column:
        """A column a key."""
        return self.numbers[:, : len(self.like.keys)]

    @property
    def steps(self) -> Column | None:
        """Of each line, where they name one."""
        columns = list(self.numbers[:, len(self.like.keys) :].T[: len(self.like.step)])
        return _step(columns) if columns else None

    @property
    def ranks(self) -> Column | None:
        """The same."""
        return self.numbers[:, -1] if self.like.rank else None


def records(text: Skeletons, wanted: Wanted, worth: Callable[[str], bool] = bool) -> Iterator[Records]:
    """Lines that say something wanted."""
    for skeleton, first in enumerate(text.firsts):
        sample = text.lines[first]
        line = line_in(sample, wanted)
        if not (line.keys or line.step) or not worth(sample):
            continue
        members = text.members(skeleton)
        numbers = _numbers(text, skeleton, line) if len(members) > 1 else None
        if numbers is not None:
            yield Records(members, line, numbers)
            continue
        for at in members:
            own = line_in(text.lines[at], wanted)
            line_numbers = [line_numbers.number for line_numbers in (*own.values, *own.step, *own.rank)]
            yield Records([at], own, np.array([line_numbers]))


def _numbers(text: Skeletons, skeleton: int, line: Line) -> Column | None:
    """Of all lines of a skeleton; None where they must be looked for each time."""
    sample, every = text.lines[text.firsts[skeleton]], (*line.values, *line.step, *line.rank)
    slots = {m.start(): slot for slot, m in enumerate(TOKEN.finditer(sample))}
    signs = [sample[number.place] if number.place >= 0 else "" for number in every]
    places = [number.place + (sign in ("+", "-")) for number, sign in zip(every, signs, strict=True)]
    printed = [at for at, number in enumerate(every) if isfinite(number.number)]
    if any(places[at] not in slots for at in printed):
        return None
    found = text.columns(skeleton, [slots[places[at]] for at in printed])
    numbers = np.tile([number.number for number in every], (len(text.members(skeleton)), 1))
    if found is not None:
        numbers[:, printed] = found * [-1.0 if signs[at] == "-" else 1.0 for at in printed]
    return None if found is None else numbers


def line_in(text: str, wanted: Wanted) -> Line:
    """Reads what is wanted; an empty line for prose. What goes on for longer is a document, or damaged."""
    text = text[:LONGEST]
    if _P["number"].search(text) is None:
        return Line([], [])
    small = text.lower()
    step, epoch = _steps_in(text), _search("epoch", text, small)
    summed, rank = not step and epoch is not None, _search("rank", text[:HEAD], small)
    line = Line([_number(epoch)] if summed and epoch else step, [_number(rank)] if rank else [], summed)
    ahead = _search("unit_ahead", text, small)
    spans: list[tuple[int, int]] = []
    for pattern, entry, holds in _KEYED:
        asked = (summed or "epoch" not in entry) and any(word in small for word in holds)
        for match in pattern.finditer(text) if asked else ():
            start, end = match.span("number")
            if "epoch" not in entry and any(a < end and start < b for a, b in spans):
                continue
            groups = match.groupdict()
            unit = _unit(groups.get("unit")) or entry.get("unit", "") or (ahead[1] if ahead and "key" in groups else "")
            key = Key(groups.get("key") or entry["tells"], unit, "bare" in entry)
            if "key" not in groups or wanted(*key):
                spans.append((start, end) if key.bare else match.span())
                _add(line, key, text, match, many="many" in entry)
    return line


def _add(line: Line, key: Key, text: str, match: re.Match[str], *, many: bool) -> None:
    """A total over many steps is divided by them."""
    steps = match.groupdict().get("steps")
    for number in _LISTED.finditer(text, *match.span("number")) if many else (match,):
        value = _number(number, 0 if many else "number")
        if steps is None or int(steps):
            line.keys.append(key)
            line.values.append(value if steps is None else Number(value.number / int(steps), -1))


def _number(match: re.Match[str], group: int | str = 1) -> Number:
    return Number(float(match[group].replace(",", "")), match.start(group))


def _unit(word: str | None) -> str:
    """What follows a number, where it is a unit and not the next key."""
    return word if word and (word in SHORT or readings_of(word)) else ""


def _steps_in(text: str) -> list[Number]:
    small = text.lower()
    if match := _search("epoch_step", text, small):
        return [_number(match, group) for group in ((1, 2, 3) if match[1] is not None else (5,))]
    simple = _search("bar", text, small) or _search("step", text, small)
    return [] if simple is None else [_number(simple)]


def _search(name: str, text: str, small: str) -> re.Match[str] | None:
    return _P[name].search(text) if any(word in small for word in _HOLDS[name]) else None


def _step(parts: Sequence[Any]) -> Any:
    return parts[0] * parts[2] + parts[1] if len(parts) == 3 else parts[0]


def _step_of(text: str) -> float:
    steps = [steps.number for steps in _steps_in(text)]
    return float(_step(steps)) if steps else np.nan


def steps_at(text: Skeletons, lines: Sequence[int]) -> Column:
    """The step of each of these lines, or of the nearest above that names one; NaN where none does."""
    known = np.full(len(text.lines), np.nan)
    for skeleton, first in enumerate(text.firsts):
        if steps := _steps_in(text.lines[first]):
            members = text.members(skeleton)
            numbers = _numbers(text, skeleton, Line(steps, [])) if len(members) > 1 else None
            known[members] = [_step_of(text.lines[at]) for at in members] if numbers is None else _step(list(numbers.T))
    named = np.maximum.accumulate(np.where(np.isnan(known), 0, np.arange(len(known))))
    found: Column = known[named[np.array(lines, dtype=np.int64)]]
    return found


def names_steps(text: str) -> bool:
    """Whether a line names several steps: it holds several records."""
    return len({match[1] for match in _P["step"].finditer(text)}) > 1
