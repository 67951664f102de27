"""The time that a line prints, in the forms that programs use; lines without one lie between their neighbours."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING

from stallwise.evidence.event import Form, Stamp
from stallwise.readers._patterns import patterns

if TYPE_CHECKING:
    from zoneinfo import ZoneInfo

LOOKED_AT = 300  # characters: stamps stand before this
FARTHEST = 400  # lines to a stamped neighbour
HEAD = 12  # lines in which a log says its zone
WORDS_BEFORE = 4  # a time behind so many words is one that the line quotes
DAY_S = 86400.0
EPOCH = date(1970, 1, 1).toordinal()
ENDS_MINUTE = 60.0  # a clock without seconds
SOON_S = 900.0  # from `date` in a script to the first line of what it starts
ZONE_S = 1800.0
_MONTHS = {m: i + 1 for i, m in enumerate("Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split())}
_ZONES_H = {
    "Z": 0, "UTC": 0, "GMT": 0, "EST": -5, "EDT": -4, "MST": -7, "MDT": -6, "PST": -8, "PDT": -7, "CET": 1, "CEST": 2, "JST": 9,
    "KST": 9,
}  # fmt: skip
_LEAP_YEAR = 2024  # the year of dates without one: every day exists
_FORMS = "dated named_year named_day_year american named glog yearless boot epoch clock minutes".split()
_WORD = re.compile(r"[A-Za-z]{3}")
_P = patterns("stamps")


class Stamps:
    """The times of one text: those its lines print, with the zone that its head states."""

    def __init__(self, lines: Sequence[str]) -> None:
        self._lines = lines
        self._zone: ZoneInfo | float | None = _stated_zone(lines)
        self._known: dict[int, Stamp | None] = {}  # events lie close together: no line is looked at twice

    def own(self, at: int) -> Stamp | None:
        """What the line itself prints in front."""
        if at not in self._known:
            stamp = _in_front(self._lines[at])
            self._known[at] = self._zoned(stamp) if stamp is not None else self._aged(at)
        return self._known[at]

    def around(self, at: int) -> Stamp | None:
        """Its own, or the interval between the stamped lines around it."""
        own = self.own(at)
        if own is not None:
            return own
        before = next((s for i in range(at - 1, max(-1, at - FARTHEST), -1) if (s := self.own(i))), None)
        if before is None:
            return None
        after = next((s for i in range(at + 1, min(len(self._lines), at + FARTHEST)) if (s := self.own(i))), None)
        to_s = float("inf")
        if after is not None and after.form is before.form and after.offset_s == before.offset_s:
            to_s = after.to_s
        quoted = stamp_of(self._lines[at])
        quoted_s = quoted.from_s if quoted is not None and quoted.form is Form.DATED and not quoted.offset_s else None
        return replace(before, to_s=max(to_s, before.to_s), own=False, quoted_s=quoted_s)

    def of(self, places: Iterable[int]) -> Iterator[Stamp | None]:
        """The time of each of many lines that are alike but for their numbers."""
        for stamp in stamps_of(self._lines[at] for at in places):
            yield None if stamp is None else self._zoned(stamp)

    def _zoned(self, stamp: Stamp) -> Stamp:
        if self._zone is None or stamp.offset_s is not None or stamp.form is Form.BOOT:
            return stamp
        offset_s = self._zone if isinstance(self._zone, float) else _offset_of(self._zone, stamp)
        return replace(stamp, offset_s=offset_s)

    def _aged(self, at: int) -> Stamp | None:
        """A row of a listing that says how long ago: before the last time that is printed above it."""
        age = _P["age"].match(self._lines[at])
        if age is None:
            return None
        listed = next((s for i in range(at - 1, max(-1, at - FARTHEST), -1) if (s := _in_front(self._lines[i]))), None)
        if listed is None:
            return None
        units = {"days": 86400.0, "hours": 3600.0, "minutes": 60.0, "seconds": 1.0}
        ago_s = sum(float(age[unit] or 0) * seconds for unit, seconds in units.items())
        finest = next(s for unit, s in reversed(units.items()) if age[unit])
        since_s = listed.from_s - ago_s
        return self._zoned(
            replace(listed, from_s=since_s - finest, to_s=since_s + 1.0, text=age[0].split()[0] + " ago")
        )


def stamp_of(line: str) -> Stamp | None:
    """The first time of a line; a date before a bare clock at the same place."""
    found = _first(line)
    return None if found is None else _made(*found)


def stamps_of(lines: Iterable[str]) -> Iterator[Stamp | None]:
    """The time of each of many lines that are alike: it stands where it stood in the line before."""
    last: tuple[str, re.Match[str]] | None = None
    for line in lines:
        same = last and _P[last[0]].match(line[:LOOKED_AT], last[1].start())
        last = (last[0], same) if last and same else _first(line)
        yield None if last is None else _made(*last)


def _in_front(line: str) -> Stamp | None:
    """A time behind words is one that the line tells of, not when it was written."""
    found = _first(line)
    if found is None:
        return None
    before = line[: found[1].start()].split()
    return _made(*found) if sum(_WORD.search(word) is not None for word in before) < WORDS_BEFORE else None


def _first(line: str) -> tuple[str, re.Match[str]] | None:
    head = line[:LOOKED_AT]
    found = [
        (match.start(), place, form, match) for place, form in enumerate(_FORMS) if (match := _P[form].search(head))
    ]
    return min(found, key=lambda m: m[:2])[2:] if found else None


def _stated_zone(lines: Sequence[str]) -> ZoneInfo | float | None:
    """A zone by its name or offset in the first lines, or the one in which they go on from a time that prints its zone."""
    head = [line[:LOOKED_AT] for line in lines[:HEAD]]
    for line in head:
        if name := _P["zone_name"].search(line):
            from zoneinfo import ZoneInfo  # few logs name a zone

            try:
                return ZoneInfo(name[1])
            except (OSError, ValueError):  # no such zone, or no table of zones here
                continue
        if offset := _P["zone_offset"].search(line):
            return _offset(f"{offset[1][0]}{offset[1][1:].partition(':')[0].zfill(2)}{offset[1].partition(':')[2]}")
        if _P["zone_utc"].search(line):
            return 0.0
    return _continued([s for line in head if (s := _in_front(line)) is not None and s.form is Form.DATED])


def _continued(stamps: Sequence[Stamp]) -> float | None:
    """Of `date -u` and the first lines of what is started after it."""
    for one, other in zip(stamps, stamps[1:], strict=False):
        if one.offset_s is not None and other.offset_s is None:
            ahead_s = other.from_s - (one.from_s - one.offset_s)
            zone_s = ahead_s // ZONE_S * ZONE_S
            return float(zone_s) if ahead_s - zone_s <= SOON_S else None
    return None


def _offset_of(zone: ZoneInfo, stamp: Stamp) -> float | None:
    if stamp.form is Form.CLOCK:
        return None
    year = 1970 if stamp.form is Form.DATED else _LEAP_YEAR
    moment = datetime(year, 1, 1, tzinfo=UTC) + timedelta(seconds=stamp.from_s)
    offset = moment.replace(tzinfo=zone).utcoffset()
    return offset.total_seconds() if offset is not None else None


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
    hours = int(found["hours"]) % 12 + 12 * (half == "P") if (half := found.get("half")) else int(found["hours"])
    seconds = hours * 3600.0 + int(found["minutes"]) * 60.0
    length = ENDS_MINUTE
    if found.get("seconds"):
        written = found["seconds"].replace(",", ".")
        seconds, length = seconds + float(written), _resolution(written)
    if form in ("clock", "minutes"):
        return Stamp(seconds, seconds + length, Form.CLOCK, text=match[0])
    month, day = found["month"] or found["month_"], found["day"] or found["day_"]
    number = _MONTHS.get(month, 0) if month.isalpha() else int(month)
    year = int(found["year"]) if found.get("year") else _LEAP_YEAR
    try:
        days = date(year, number, int(day)).toordinal()
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
    if zone in _ZONES_H:
        return _ZONES_H[zone] * 3600.0
    digits = zone[1:].replace(":", "")
    return (1 if zone[0] == "+" else -1) * (int(digits[:2]) * 3600.0 + int(digits[2:] or 0) * 60.0)
