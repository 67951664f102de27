"""The clock in a line."""

from __future__ import annotations

import re
from datetime import date
from functools import lru_cache

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


@lru_cache(maxsize=64)
def _day(year: str, month: str, day: str) -> float | None:
    try:
        return DAY_S * date(int(year), int(month), int(day)).toordinal()
    except ValueError:
        return None
