"""One clock for several files: what each prints, how far it is from the others, how that is known, and what is left in doubt."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import date
from itertools import groupby

from stallwise.doctor.findings.incident import Clock
from stallwise.doctor.incident.progress import Progress
from stallwise.evidence.event import Event, Role
from stallwise.evidence.stamp import Form, Stamp
from stallwise.late import np

ZONE_S = 900.0  # zones are whole quarters of an hour
LATE_S = 600.0  # two programs notice one thing within this; a zone is timed from a delay by it
UNTIED_S = 30.0  # doubt of clocks that print their zones and that nothing else ties: NTP lost for hours, at 100 ppm over three days
ONE_MACHINE_S = 1.0
SEVERAL = 3  # step numbers in two logs, from which their clocks can be compared
WIDEST_S = 14 * 3600.0
SHORTLY_S = 1200.0  # from the job's slowing or end: where its fault is looked for
NEAR_S = 120.0  # a fault this near needs no other zone
DAY_S = 86400.0
INF = float("inf")
_LEAP = 2024
_NEW_YEAR = date(_LEAP, 1, 1).toordinal()
_EPOCH = date(1970, 1, 1).toordinal()
_PID = re.compile(r"\bpid(?:\(s\))?[ =:]{1,2}(\d{3,9})\b")
_SEQUENCE = re.compile(r"SeqNum=(\d{1,12})")


@dataclass(slots=True)
class OneClock:
    """What one file tells of time."""

    file: str
    host: str
    events: list[Event] = field(default_factory=list)
    progress: Progress | None = None
    clock: Clock | None = None

    def stamps(self) -> Iterator[Stamp]:
        """Of its events."""
        return (e.stamp for e in self.events if e.stamp is not None)


class Clocks:
    """The clocks of all files, solved against one."""

    def __init__(self, events: Iterable[Event], progress: list[Progress], hosts: dict[str, str]) -> None:
        self.files: dict[str, OneClock] = {}
        for event in events:
            self._of(event.source.file, hosts).events.append(event)
        for one in progress:
            self._of(one.table.source.file, hosts).progress = one
        self.year, self.day_s = self._calendar()
        self._solve()

    def _of(self, file: str, hosts: dict[str, str]) -> OneClock:
        return self.files.setdefault(file, OneClock(file, hosts.get(file, "")))

    def _calendar(self) -> tuple[int, float]:
        """The year of dates without one, and the day of bare clocks: those of the other files."""
        dated = [s.from_s for t in self.files.values() for s in t.stamps() if s.form is Form.DATED]
        dated += [float(t.progress.table.columns["from_s"][-1]) for t in self.files.values()
                  if t.progress and t.progress.table.meta["form"] == Form.DATED.value]  # fmt: skip
        if not dated:
            return _LEAP, 0.0
        last = max(dated)
        return date.fromordinal(_EPOCH + int(last // DAY_S)).year, last // DAY_S * DAY_S

    def local(self, form: Form, seconds: float) -> float:
        """Seconds since 1970 as the file's own clock shows them."""
        if form is Form.YEARLESS and seconds != INF:
            day = date.fromordinal(_NEW_YEAR + int(seconds // DAY_S))
            year = self.year if (day.month, day.day) != (2, 29) else _LEAP
            return (day.replace(year=year).toordinal() - _EPOCH) * DAY_S + seconds % DAY_S
        return self.day_s + seconds if form is Form.CLOCK else seconds

    def placed(self, event: Event) -> tuple[float, float]:
        """The event's interval on the incident's clock; NaN where nothing ties its file to it."""
        stamp, clock = event.stamp, self.files[event.source.file].clock
        if stamp is None:
            return float("nan"), float("nan")
        shift = clock.shift_s if clock else None
        if stamp.offset_s is not None and stamp.form is Form.DATED and self.zoned:
            shift = -stamp.offset_s + self._skew.get(event.source.file, 0.0)
        if shift is None:
            return float("nan"), float("nan")
        return self.local(stamp.form, stamp.from_s) + shift, self.local(stamp.form, stamp.to_s) + shift

    def steps_at(self, one: Progress) -> list[float]:
        """The ends of its steps on the incident's clock."""
        clock = self.files[one.table.source.file].clock
        if clock is None or clock.shift_s is None:
            return []
        form = Form(one.table.meta["form"])
        return [self.local(form, t) + clock.shift_s for t in one.table.columns["from_s"].tolist()]

    def doubt_s(self, one: str, other: str) -> float:
        """How far the order of two files may be off."""
        a, b = self.files[one], self.files[other]
        if one == other:
            return 0.0
        if a.clock is None or b.clock is None or a.clock.shift_s is None or b.clock.shift_s is None:
            return INF
        if a.host and a.host == b.host and "assumed" not in (a.clock.known_by + b.clock.known_by):
            return ONE_MACHINE_S
        return a.clock.doubt_s + b.clock.doubt_s

    # Solving: printed zones first, then what two files both tell, then the machine, then an assumption that orders nothing.

    def _solve(self) -> None:
        self._skew: dict[str, float] = {}
        self.zoned = False
        for timed in self.files.values():
            offset = _printed(timed)
            if offset is not None:
                self.zoned = True
                timed.clock = Clock(timed.file, Form.DATED, -offset, UNTIED_S, "it prints its zone", timed.host)
        if not self.zoned:
            self._refer()
        self._compare_printed()
        left = [t for t in self.files.values() if t.clock is None]
        while left:
            solved = next(((t, c) for t in left if (c := self._tied(t)) is not None), None)
            solved = solved or next(((t, c) for t in left if (c := self._same_machine(t)) is not None), None)
            if solved is None:
                break
            solved[0].clock = solved[1]
            left.remove(solved[0])
        for timed in left:
            timed.clock = self._assumed(timed)

    def _refer(self) -> None:
        """No zone is printed anywhere: the log with most steps is the clock, else the file with most dated events."""

        def weight(timed: OneClock) -> tuple[int, int]:
            forms = Counter(s.form for s in timed.stamps())
            steps = len(timed.progress.table) if timed.progress else 0
            return steps, sum(n for form, n in forms.items() if form is not Form.BOOT)

        best = max(self.files.values(), key=weight, default=None)
        if best is not None and max(weight(best)) > 0:
            best.clock = Clock(best.file, _form(best), 0.0, 0.0, "the incident is timed by its clock", best.host)
        elif best is not None:
            best.clock = Clock(best.file, Form.BOOT, 0.0, 0.0, "the incident is timed from its boot", best.host)

    def _compare_printed(self) -> None:
        """Clocks that print their zones and log the same steps: how far one is off, and the doubt that is left."""
        printed = [t for t in self.files.values() if t.clock is not None and t.progress is not None]
        for timed in printed[1:]:
            same = self._same_steps(timed, printed[0])
            if same is None or timed.clock is None or printed[0].clock is None:
                continue
            shift, doubt, count = same
            skew = shift - (timed.clock.shift_s or 0.0)
            for one in (timed, printed[0]):
                assert one.clock is not None
                one.clock = Clock(one.file, one.clock.form, one.clock.shift_s, doubt, one.clock.known_by, one.host)
            if abs(skew) > max(2.0, 2 * doubt):
                self._skew[timed.file] = skew
                known = f"{count} step numbers in {printed[0].file} too: its clock is {skew:+.0f} s off"
                timed.clock = Clock(timed.file, timed.clock.form, shift, doubt, known, timed.host)

    def _tied(self, timed: OneClock) -> Clock | None:
        """By step numbers, or by a job, process or collective that both name."""
        for other in self.files.values():
            if other.clock is None or other.clock.shift_s is None:
                continue
            same = self._same_steps(timed, other)
            if same is not None:
                known = f"{same[2]} step numbers in {other.file} too"
                return Clock(timed.file, _form(timed), same[0], same[1] + other.clock.doubt_s, known, timed.host)
            mine, theirs = self._keys(timed), self._keys(other)
            for key in sorted(mine.keys() & theirs.keys()):
                aside = theirs[key] - mine[key]
                if _form(timed) is Form.BOOT:
                    known = f"{key[0]} {key[1]} in {other.file} too"
                    return Clock(timed.file, Form.BOOT, aside, LATE_S, known, timed.host)
                zone = round(aside / ZONE_S) * ZONE_S
                if abs(aside - zone) <= LATE_S and abs(zone) <= WIDEST_S:
                    known = f"{key[0]} {key[1]} in {other.file} too, a zone of {zone / 3600:+.2f} h"
                    return Clock(timed.file, _form(timed), zone, abs(aside - zone) + 2.0, known, timed.host)
        return None

    def _same_machine(self, timed: OneClock) -> Clock | None:
        if not timed.host or _form(timed) is Form.BOOT:
            return None
        for other in self.files.values():
            clock = other.clock
            if (
                clock is not None
                and clock.shift_s is not None
                and other.host == timed.host
                and clock.form is not Form.BOOT
            ):
                if _printed(other) is None:
                    known = f"the machine of {other.file}"
                    return Clock(
                        timed.file, _form(timed), clock.shift_s, clock.doubt_s + ONE_MACHINE_S, known, timed.host
                    )
        return None

    def _assumed(self, timed: OneClock) -> Clock:
        """The zone in which its faults come shortly before the job ends or slows; it orders nothing."""
        form = _form(timed)
        if form is Form.BOOT:
            return Clock(timed.file, form, None, INF, "it counts from a boot whose date is not here", timed.host)
        ends = self._ends()
        faults = [e.stamp for e in timed.events if e.stamp is not None and e.role is not Role.CONFIRMATION]
        times = [self.local(s.form, s.from_s) for s in faults]
        if not ends or not times:
            return Clock(timed.file, form, 0.0, INF, "its zone is assumed", timed.host)
        zones = np.arange(-WIDEST_S, WIDEST_S + 1, 1800.0).tolist()
        off = {zone: min(abs(t + zone - end) for t in times for end in ends) for zone in zones}
        shift = 0.0 if off[0.0] <= NEAR_S else min(zones, key=lambda zone: (off[zone], abs(zone)))
        if off[shift] > SHORTLY_S:
            shift = 0.0
        return Clock(timed.file, form, float(shift), INF, f"its zone is assumed ({shift / 3600:+.1f} h)", timed.host)

    def _ends(self) -> list[float]:
        """When the job slowed or stopped, on the incident's clock."""
        found = []
        for timed in self.files.values():
            if timed.progress is not None and (times := self.steps_at(timed.progress)):
                found += [times[timed.progress.slow or timed.progress.good], times[-1]]
        if not found:
            solved = (t for t in self.files.values() if t.clock is not None and t.clock.shift_s is not None)
            found = [at for t in solved for e in t.events if (at := self.placed(e)[0]) == at]
        return found

    def _same_steps(self, timed: OneClock, other: OneClock) -> tuple[float, float, int] | None:
        """The shift that brings its steps on the other's, what is left in doubt, and of how many steps."""
        if timed.progress is None or other.progress is None or timed is other:
            return None
        ends = self.steps_at(other.progress)
        theirs = dict(zip(other.progress.table.columns["step"].tolist(), ends, strict=False))
        form = Form(timed.progress.table.meta["form"])
        columns = timed.progress.table.columns
        pairs = [
            theirs[step] - self.local(form, at)
            for step, at in zip(columns["step"].tolist(), columns["from_s"].tolist(), strict=True)
            if step in theirs
        ]
        if len(pairs) < SEVERAL:
            return None
        middle = float(np.median(pairs))
        return middle, float(np.median(np.abs(np.array(pairs) - middle))) + 1.0, len(pairs)

    def _keys(self, timed: OneClock) -> dict[tuple[str, str], float]:
        """Names that stand in two files: jobs, processes that die, collectives that time out."""
        found: dict[tuple[str, str], float] = {}
        shift = timed.clock.shift_s if timed.clock is not None and timed.clock.shift_s is not None else 0.0
        for event in timed.events:
            if event.stamp is None:
                continue
            at = self.local(event.stamp.form, event.stamp.from_s) + shift
            for key in keys_of(event):
                found.setdefault(key, at)
        return found


def keys_of(event: Event) -> Iterator[tuple[str, str]]:
    """Names of one thing that several files use."""
    for slot, value in event.slots.items():
        if slot.rstrip("_") == "job":
            yield "job", str(value).partition(".")[0]
    if event.kind != "driver-error":  # a pid is the machine's own: only deaths name one that others name, too
        for match in _PID.finditer(event.text):
            yield "process", match[1]
    sequence = _SEQUENCE.search(event.word("fields"))
    if sequence is not None:
        yield "collective", sequence[1]


def _form(timed: OneClock) -> Form:
    forms = Counter(s.form for s in timed.stamps())
    if timed.progress is not None:
        forms[Form(timed.progress.table.meta["form"])] += 1
    return forms.most_common(1)[0][0] if forms else Form.CLOCK


def _printed(timed: OneClock) -> float | None:
    """The zone that most of its lines print."""
    offsets = Counter(s.offset_s for s in timed.stamps() if s.form is Form.DATED and s.own)
    if timed.progress is not None:
        offsets[timed.progress.table.meta["offset_s"]] += len(timed.progress.table)
    most = [offset for offset, _ in offsets.most_common(1)]
    return most[0] if most else None


def grouped(events: Iterable[Event]) -> list[list[Event]]:
    """Events of one line together."""
    ordered = sorted(events, key=lambda e: (e.source.file, line_of(e)))
    return [list(same) for _, same in groupby(ordered, key=lambda e: e.source)]


def line_of(event: Event) -> int:
    """Its line in its file."""
    digits = event.source.where.removeprefix("line ").partition("-")[0]
    return int(digits) if digits.isdigit() else 0
