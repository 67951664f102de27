"""The time that a line prints, in the forms that programs use; lines without one lie between their neighbours."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import date

from stallwise.evidence.stamp import Form, Stamp
from stallwise.readers._patterns import patterns

LOOKED_AT = 300  # characters: stamps stand before this
FARTHEST = 400  # lines to a stamped neighbour
DAY_S = 86400.0
EPOCH = date(1970, 1, 1).toordinal()
ENDS_MINUTE = 60.0  # a clock without seconds
_MONTHS = {m: i + 1 for i, m in enumerate("Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split())}
_UTC = ("Z", "UTC", "GMT")
_LEAP_YEAR = 2024  # the year of dates without one: every day exists
_FORMS = ("dated", "named_year", "named", "glog", "yearless", "boot", "epoch", "clock", "minutes")
_P = patterns("stamps")


def stamp_of(line: str) -> Stamp | None:
    """The first time of a line; a date before a bare clock at the same place."""
    found = _first(line)
    return None if found is None else _made(*found)


def stamps_of(lines: Iterable[str]) -> Iterator[Stamp | None]:
    """The time of each of many lines that are alike but for their numbers: it stands where it stood in the line before."""
    last: tuple[str, re.Match[str]] | None = None
    for line in lines:
        same = last and _P[last[0]].match(line[:LOOKED_AT], last[1].start())
        last = (last[0], same) if last and same else _first(line)
        yield None if last is None else _made(*last)


def _first(line: str) -> tuple[str, re.Match[str]] | None:
    head = line[:LOOKED_AT]
    found = [
        (match.start(), place, form, match) for place, form in enumerate(_FORMS) if (match := _P[form].search(head))
    ]
    return min(found, key=lambda m: m[:2])[2:] if found else None


def stamp_around(lines: Sequence[str], at: int) -> Stamp | None:
    """The stamp of a line, or the interval between the stamped lines around it."""
    own = stamp_of(lines[at])
    if own is not None:
        return own
    before = next((s for i in range(at - 1, max(-1, at - FARTHEST), -1) if (s := stamp_of(lines[i]))), None)
    after = next((s for i in range(at + 1, min(len(lines), at + FARTHEST)) if (s := stamp_of(lines[i]))), None)
    if before is None:
        return None
    to_s = float("inf")
    if after is not None and after.form is before.form and after.offset_s == before.offset_s:
        to_s = after.to_s
    return replace(before, to_s=max(to_s, before.to_s), own=False)


def _made(form: str, match: re.Match[str]) -> Stamp | None:
    found = match.groupdict()
    if form == "boot":
        seconds = float(match[1])
        return Stamp(seconds, seconds + _resolution(match[1]), Form.BOOT, text=match[0])
    if form == "epoch":
        seconds = float(match[1]) / (1e3 if match[2] else 1.0)
        return Stamp(
            seconds, seconds + (1.0 if "." not in match[1] else _resolution(match[1])), Form.DATED, 0.0, text=match[1]
        )
    seconds = int(found["hours"]) * 3600.0 + int(found["minutes"]) * 60.0
    length = ENDS_MINUTE
    if found.get("seconds"):
        written = found["seconds"].replace(",", ".")
        seconds, length = seconds + float(written), _resolution(written)
    if form in ("clock", "minutes"):
        return Stamp(seconds, seconds + length, Form.CLOCK, text=match[0])
    month = found["month"]
    number = _MONTHS.get(month, 0) if month.isalpha() else int(month)
    year = int(found["year"]) if found.get("year") else _LEAP_YEAR
    try:
        days = date(year, number, int(found["day"])).toordinal()
    except ValueError:
        return None
    if not found.get("year"):
        start = (days - date(_LEAP_YEAR, 1, 1).toordinal()) * DAY_S
        return Stamp(start + seconds, start + seconds + length, Form.YEARLESS, text=match[0])
    start = (days - EPOCH) * DAY_S + seconds
    return Stamp(start, start + length, Form.DATED, _offset(found.get("zone")), text=match[0])


def _resolution(written: str) -> float:
    digits = len(written.partition(".")[2])
    return float(10.0 ** -min(digits, 9))


def _offset(zone: str | None) -> float | None:
    if not zone:
        return None
    if zone in _UTC:
        return 0.0
    digits = zone[1:].replace(":", "")
    return (1 if zone[0] == "+" else -1) * (int(digits[:2]) * 3600.0 + int(digits[2:] or 0) * 60.0)
