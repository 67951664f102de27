"""The clock in a line."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date
from functools import lru_cache

from stallwise.evidence.number_columns import TOKEN, Column
from stallwise.evidence.skeletons import LONGEST, Skeletons
from stallwise.late import np

DAY_S = 86400.0
# A date as most print it, or as Americans do.
_CLOCK = re.compile(
    r"(?:(?P<year>\d{4})[-/](?P<month>\d\d)[-/](?P<day>\d\d)[ T]|(?P<month_>\d\d)/(?P<day_>\d\d)/(?P<year_>\d{4})[ T-]|\b)"
    r"(?P<hours>\d\d):(?P<minutes>\d\d):(?P<seconds>\d\d)(?:[.,](?P<part>\d{1,6})\d*)?(?:(?=Z|[+-]\d\d)|\b)"
)
_TIME = ("hours", "minutes", "seconds")
_DATES = (("year", "month", "day"), ("year_", "month_", "day_"))


def clock_of(text: str) -> float | None:
    """Seconds since midnight (or since the year 1 where the date is printed)."""
    match = _CLOCK.search(text)
    if not match:
        return None
    hours, minutes, seconds = (int(match[part]) for part in _TIME)
    whole = hours * 3600 + minutes * 60 + seconds + float(f"0.{match['part'] or 0}")
    dated = _date_in(match)
    day = _day(*(match[part] for part in dated)) if dated else 0.0
    return None if day is None else whole + day


def _date_in(match: re.Match[str]) -> tuple[str, ...]:
    """The groups that hold the date; none where it is not printed."""
    return next((parts for parts in _DATES if match[parts[0]] is not None), ())


def clocks_of(text: Skeletons, skeleton: int) -> Column:
    """The same of all lines of a skeleton, which have it in the same place; NaN where there is none."""
    members = text.members(skeleton)
    first = text.lines[members[0]][:LONGEST]
    match = _CLOCK.search(first)
    if match is None:
        return np.full(len(members), np.nan)
    slots = {m.start(): slot for slot, m in enumerate(TOKEN.finditer(first))}
    dated = _date_in(match)
    places = [match.start(group) for group in (*dated, *_TIME)]
    numbers = None
    if "," not in match[0] and all(place in slots for place in places):
        numbers = text.columns(skeleton, [slots[place] for place in places])
    if numbers is None:
        return np.array([clock_of(text.lines[at]) for at in members], dtype=float)
    seconds: Column = numbers[:, -3] * 3600 + numbers[:, -2] * 60 + numbers[:, -1]
    if dated:
        dates, of = np.unique(numbers[:, :3] @ (1e4, 1e2, 1.0), return_inverse=True)
        parts = ((d // 10_000, d // 100 % 100, d % 100) for d in dates.astype(int).tolist())
        seconds = seconds + np.array([_day(*map(str, one)) for one in parts], dtype=float)[of]
    return seconds


def clocks_at(text: Skeletons, lines: Sequence[int]) -> Column:
    """The same of these lines."""
    known = np.full(len(text.lines), np.nan)
    for skeleton in {text.of[at] for at in lines}:
        known[text.members(skeleton)] = clocks_of(text, skeleton)
    found: Column = known[np.array(lines, dtype=np.int64)]
    return found


@lru_cache(maxsize=64)
def _day(year: str, month: str, day: str) -> float | None:
    try:
        return DAY_S * date(int(year), int(month), int(day)).toordinal()
    except (ValueError, OverflowError):  # no such day, or no such year
        return None
