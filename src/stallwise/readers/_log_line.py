"""One line of a training log: its step, its rank and the values it prints under their keys, whatever the framework."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from stallwise.evidence.number_columns import TOKEN, Column
from stallwise.evidence.reading import Wanted
from stallwise.evidence.skeletons import Skeletons
from stallwise.readers._patterns import patterns
from stallwise.units import readings_of

_P = patterns("log_line")
_LISTED = re.compile(r"[^, ]+")  # one number of a list
HEAD = 120  # characters before which a line names its rank
SHORT = ("k", "K", "M", "B", "G")  # thousands and so on
STEP_TIME, STEP_RATE, EPOCH_TIME = "step time", "it/s", "epoch time"
MOST_PLANS = 20_000  # skeletons; a log has a few dozen, prose has one a line


class Key(NamedTuple):
    """What stands before a number, and its unit."""

    key: str
    unit: str
    bare: bool = False  # no sign stands between the two


@dataclass(slots=True)
class Line:
    """What one line said."""

    step: float | None = None
    rank: int | None = None
    values: list[tuple[Key, float]] = field(default_factory=list)
    places: list[int] = field(default_factory=list)  # where each number starts; -1 where it stands nowhere as such
    epoch: bool = False  # sums up an epoch


@dataclass(frozen=True, slots=True)
class _Plan:
    """How to read lines of one skeleton (a line without its digits): which number of the line is which value."""

    values: tuple[tuple[Key, int, float], ...]  # key, number of the line (-1: the constant), sign or constant
    step: tuple[int, ...]  # numbers of the line that are the step, or epoch, step and steps an epoch
    rank: int  # number of the line that is the rank; -1 where it names none
    epoch: bool


@dataclass(frozen=True, slots=True)
class Block:
    """Lines that print the same keys."""

    lines: list[int]
    keys: tuple[Key, ...]
    values: Column  # a row a line, a column a key
    steps: Column | None = None
    ranks: Column | None = None
    epoch: bool = False  # sums up an epoch


def blocks_in(text: Skeletons, worth: Callable[[str], bool], wanted: Wanted) -> Iterator[Block]:
    """Lines that say something wanted. Keys and units are looked up once for lines that differ in digits alone."""
    for skeleton, first in enumerate(text.firsts):
        sample = text.lines[first]
        if not worth(sample):
            continue
        plan = _plan(sample, wanted) if skeleton < MOST_PLANS else None
        if plan is not None and not plan.values and not plan.step:
            continue
        block = _planned(text, skeleton, plan) if plan is not None else None
        if block is not None:
            yield block
            continue
        for at in text.members(skeleton):
            line = parse_line(text.lines[at], wanted)
            if line.values or line.step is not None:
                keys = tuple(key for key, _ in line.values)
                yield Block(
                    [at], keys, np.array([[n for _, n in line.values]]), _one(line.step), _one(line.rank), line.epoch
                )


def _one(number: float | None) -> Column | None:
    return None if number is None else np.array([float(number)])


def _planned(text: Skeletons, skeleton: int, plan: _Plan) -> Block | None:
    wanted = (
        [slot for _, slot, _ in plan.values if slot >= 0] + list(plan.step) + ([plan.rank] if plan.rank >= 0 else [])
    )
    numbers = text.columns(skeleton, slots := sorted(set(wanted)))
    if numbers is None:
        return None
    column = dict(zip(slots, numbers.T, strict=True))
    values = np.empty((len(numbers), len(plan.values)))
    for at, (_, slot, sign) in enumerate(plan.values):
        values[:, at] = column[slot] * sign if slot >= 0 else sign
    parts = [column[slot] for slot in plan.step]
    steps = parts[0] * parts[2] + parts[1] if len(parts) == 3 else parts[0] if parts else None
    keys = tuple(key for key, _, _ in plan.values)
    return Block(text.members(skeleton), keys, values, steps, column.get(plan.rank), plan.epoch)


def _plan(text: str, wanted: Wanted) -> _Plan | None:
    """How lines like this one are read; None where the numbers must be looked for each time."""
    line = parse_line(text, wanted)
    if any(place < 0 for place in line.places):
        return None
    slots = {m.start(): slot for slot, m in enumerate(TOKEN.finditer(text))}
    values: list[tuple[Key, int, float]] = []
    for (key, number), place in zip(line.values, line.places, strict=True):
        sign = text[place : place + 1]
        at = place + (sign in "+-")
        if at in slots:
            values.append((key, slots[at], -1.0 if sign == "-" else 1.0))
        elif number != number or number in (float("inf"), float("-inf")):
            values.append((key, -1, number))
        else:
            return None
    epoch = _P["epoch"].search(text)
    places = [place for place, _ in _steps_in(text)] or ([epoch.start(1)] if epoch else [])
    ranked = _P["rank"].search(text[:HEAD])
    if not all(place in slots for place in places):
        return None
    rank = slots.get(ranked.start(1), -1) if ranked is not None else -1
    return _Plan(tuple(values), tuple(slots[p] for p in places), rank, line.epoch)


def parse_line(text: str, wanted: Wanted) -> Line:
    """Reads what is wanted; an empty Line for prose."""
    ranked = _P["rank"].search(text[:HEAD])
    line = Line(step_of(text), int(ranked[1]) if ranked is not None else None)
    spans = _listed(text, line)
    ahead = _P["unit_ahead"].search(text)
    for pattern, bare in ((_P["pair"], False), (_P["bare"], True)):
        for match in pattern.finditer(text):
            if any(a < match.end(2) and match.start(2) < b for a, b in spans):
                continue
            unit = _unit(match[3]) or (ahead[1] if ahead else "")
            if wanted(match[1], unit, bare):
                spans.append(match.span(2) if bare else match.span())
                _add(line, Key(match[1], unit, bare), _number(match[2]), match.start(2))
    for match in _P["rate"].finditer(text):
        if any(a <= match.start() < b for a, b in spans):
            continue
        if match[4]:
            _add(line, Key(STEP_RATE, ""), float(match[4]), match.start(4))
        else:
            _add(line, Key(STEP_TIME, match[2]), float(match[1]), match.start(1))
    if line.step is None and (epoch := _P["epoch"].search(text)):
        line.step, line.epoch = float(epoch[1]), True
        if took := _P["epoch_time"].search(text.rstrip()):
            unit = "min" if (took[2] or "").lower() == "min" else "s"
            group = 1 if took[1] else 3
            _add(line, Key(EPOCH_TIME, unit), float(took[group]), took.start(group))
    return line


def _unit(word: str | None) -> str:
    """What follows a number, where it is a unit and not the next key."""
    return word if word and (word in SHORT or readings_of(word)) else ""


def _add(line: Line, key: Key, number: float, place: int = -1) -> None:
    line.values.append((key, number))
    line.places.append(place)


def _listed(text: str, line: Line) -> list[tuple[int, int]]:
    """Step times that come as a list or as a total over many steps; where they stood."""
    spans: list[tuple[int, int]] = []
    for match in _P["list"].finditer(text):
        for number in _LISTED.finditer(text, *match.span(2)):
            _add(line, Key(STEP_TIME, match[1] or "s"), float(number[0]), number.start())
        spans.append(match.span())
    for match in _P["total"].finditer(text):
        if int(match[1]):
            _add(line, Key(STEP_TIME, match[3]), float(match[2]) / int(match[1]))
            spans.append(match.span())
    return spans


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return float(text.replace(",", ""))


def _steps_in(text: str) -> list[tuple[int, str]]:
    """The numbers that are the step, or epoch, step and steps an epoch, and where they stand."""
    if match := _P["epoch_step"].search(text):
        groups = (1, 2, 3) if match[1] is not None else (5,)
        return [(match.start(group), match[group]) for group in groups]
    simple = _P["bar"].search(text) or _P["step"].search(text)
    return [] if simple is None else [(simple.start(1), simple[1])]


def step_of(text: str) -> float | None:
    """The step that a line names."""
    told = [float(digits) for _, digits in _steps_in(text)]
    return (told[0] * told[2] + told[1] if len(told) == 3 else told[0]) if told else None


def names_steps(text: str) -> bool:
    """Whether a line names several steps: it holds several records."""
    return len({match[1] for match in _P["step"].finditer(text)}) > 1
