"""The clock in a line."""

from __future__ import annotations

import re
from datetime import date
from functools import lru_cache

from stallwise.evidence.number_columns import TOKEN
from stallwise.evidence.skeletons import LONGEST, Skeletons

DAY_S = 86400.0
_CLOCK = re.compile(
    r"(?:(\d{4})[-/](\d\d)[-/](\d\d)[ T]|\b)(\d\d):(\d\d):(\d\d)(?:[.,](\d{1,6})\d*)?(?:(?=Z|[+-]\d\d)|\b)"
)


def clock_of(text: str) -> float | None:
    """Seconds since midnight (or since the year 1 where the date is printed)."""
    match = _CLOCK.search(text)
    if not match:
        return None
    seconds = int(match[4]) * 3600 + int(match[5]) * 60 + int(match[6]) + float(f"0.{match[7] or 0}")
    if match[1]:
        day = _day(match[1], match[2], match[3])
        return None if day is None else seconds + day
    return seconds


def clocks_of(text: Skeletons, skeleton: int) -> list[float | None]:
    """The same of all lines of a skeleton, which have it in the same place."""
    members = text.members(skeleton)
    first = text.lines[members[0]][:LONGEST]
    match = _CLOCK.search(first)
    if match is None:
        return [None] * len(members)
    slots = {m.start(): slot for slot, m in enumerate(TOKEN.finditer(first))}
    places = [match.start(group) for group in (1, 2, 3, 4, 5, 6) if match[group] is not None]
    numbers = None
    if "," not in match[0] and all(place in slots for place in places):
        numbers = text.columns(skeleton, [slots[place] for place in places])
    if numbers is None:
        return [clock_of(text.lines[at]) for at in members]
    seconds: list[float] = (numbers[:, -3] * 3600 + numbers[:, -2] * 60 + numbers[:, -1]).tolist()
    if match[1] is None:
        return list(seconds)
    days = [_day(*(f"{part:.0f}" for part in date)) for date in numbers[:, :3].tolist()]
    return [None if day is None else second + day for second, day in zip(seconds, days, strict=True)]


@lru_cache(maxsize=64)
def _day(year: str, month: str, day: str) -> float | None:
    try:
        return DAY_S * date(int(year), int(month), int(day)).toordinal()
    except ValueError:
        return None
