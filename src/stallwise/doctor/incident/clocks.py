"""One clock for several files: what each prints, how far it is from the others, how that is known, and what is left in doubt."""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from itertools import product

from stallwise.doctor.findings.incident import Clock
from stallwise.doctor.incident.hosts import host_of
from stallwise.doctor.incident.progress import Progress
from stallwise.doctor.incident.rules import PROCESS, kind_of, rule_of
from stallwise.evidence.event import Event, Form, Role, Stamp
from stallwise.late import np

ZONE_S = 1800.0  # zones are whole halves of an hour, but for three that nobody trains in
HOUR_S = 3600.0
UNTIED_S = 30.0  # doubt of a clock whose zone is known and that nothing else ties: NTP lost for hours, at 100 ppm over three days
ONE_MACHINE_S = 1.0
SEVERAL = 3  # step numbers in two logs, from which their clocks can be compared
WIDEST_S = 14 * HOUR_S
SOON_S = 60.0  # within which what one fault does to the program beside it is printed
NAMED_S = 120.0  # within which two programs print what ended one process, job or collective
BOOT_S = 600.0  # doubt of a boot clock that a process tells: nothing rounds it to a zone
DAY_S = 86400.0
INF, NAN = math.inf, math.nan
STEPS, NAMED, FOLLOWS = 10.0, 3.0, 1.0  # weight of ties
_LEAP = 2024
_NEW_YEAR = date(_LEAP, 1, 1).toordinal()
_EPOCH = date(1970, 1, 1).toordinal()
_PID = re.compile(r"\b(?:pid(?:\(s\))?[ =:]{1,2}|[Kk]illed process )(\d{3,9})\b")
_SEQUENCE = re.compile(r"SeqNum=(\d{1,12})")
_RAN = re.compile(r"ran for (\d{1,12}) milliseconds")


@dataclass(slots=True)
class OneClock:
    """What one file tells of time."""

    file: str
    host: str
    events: list[Event] = field(default_factory=list)
    progress: Progress | None = None
    clock: Clock | None = None

    @property
    def form(self) -> Form | None:
        """In which most of its lines print the time; None where none prints it."""
        forms = Counter(e.stamp.form for e in self.events if e.stamp is not None)
        if self.progress is not None:
            forms[Form(self.progress.table.meta["form"])] += len(self.progress.table)
        return forms.most_common(1)[0][0] if forms else None

    @property
    def offset_s(self) -> float | None:
        """The zone that most of its lines print, or that its head states."""
        offsets = Counter(
            e.stamp.offset_s for e in self.events if e.stamp is not None and e.stamp.form is not Form.BOOT
        )
        if self.progress is not None:
            offsets[self.progress.table.meta["offset_s"]] += len(self.progress.table)
        return offsets.most_common(1)[0][0] if offsets else None

    @property
    def first_s(self) -> float:
        """The first time that it prints."""
        if self.progress is not None:
            return float(self.progress.table.columns["from_s"][0])
        return next((e.stamp.from_s for e in sorted(self.events, key=line_of) if e.stamp is not None), 0.0)

    @property
    def shift_s(self) -> float | None:
        """Onto the incident's clock."""
        return self.clock.shift_s if self.clock is not None else None


@dataclass(frozen=True, slots=True)
class Tie:
    """One thing that two files tell."""

    aside_s: float  # to be added to the one's clock
    what: str
    weight: float
    near_s: float  # how far the two lines may lie apart


class Clocks:
    """The clocks of all files, solved against one."""

    def __init__(
        self,
        events: Iterable[Event],
        progress: Sequence[Progress],
        hosts: Mapping[str, str],
        begun: Mapping[str, float],
    ) -> None:
        self._hosts = hosts
        self._begun = begun  # collectives by number: seconds since 1970
        self.files: dict[str, OneClock] = {}
        for event in events:
            self._of(event.source.file, hosts).events.append(event)
        for one in progress:
            self._of(one.table.source.file, hosts).progress = one
        self._year, self._day_s = self._calendar()
        self._solve()

    def _of(self, file: str, hosts: Mapping[str, str]) -> OneClock:
        return self.files.setdefault(file, OneClock(file, hosts.get(file, "")))

    def _calendar(self) -> tuple[int, float]:
        """The year of dates without one, and the day of bare clocks: those of the other files."""
        stamps = [s for f in self.files.values() for e in f.events if (s := e.stamp) is not None]
        dated = [s.from_s for s in stamps if s.form is Form.DATED]
        dated += [float(f.progress.table.columns["from_s"][-1]) for f in self.files.values()
                  if f.progress and f.progress.table.meta["form"] == Form.DATED.value]  # fmt: skip
        year = date.fromordinal(_EPOCH + int(max(dated) // DAY_S)).year if dated else _LEAP
        dated = dated or [_dated(Form.YEARLESS, s.from_s, year, 0.0) for s in stamps if s.form is Form.YEARLESS]
        return year, max(dated) // DAY_S * DAY_S if dated else 0.0

    def _local(self, event: Event, stamp: Stamp) -> tuple[float, float]:
        """Seconds since 1970 as the file's own clock shows them."""
        first_s = self.files[event.source.file].first_s if stamp.form is Form.CLOCK else 0.0
        past_midnight_s = DAY_S if stamp.form is Form.CLOCK and stamp.from_s < first_s - HOUR_S else 0.0
        from_s, to_s = (
            _dated(stamp.form, at + past_midnight_s, self._year, self._day_s) for at in (stamp.from_s, stamp.to_s)
        )
        return from_s, to_s

    def placed(self, event: Event) -> tuple[float, float]:
        """The event's interval on the incident's clock; NaN where nothing ties its file to it."""
        stamp, file = event.stamp, self.files[event.source.file]
        if stamp is None or file.shift_s is None or (stamp.form is Form.BOOT) != (file.form is Form.BOOT):
            return NAN, NAN
        shift = file.shift_s
        if stamp.offset_s is not None and file.offset_s is not None:  # a line may print another zone than the others
            shift += file.offset_s - stamp.offset_s
        from_s, to_s = self._local(event, stamp)
        return from_s + shift, to_s + shift

    def steps_at(self, one: Progress | None) -> list[float]:
        """The ends of its steps on the incident's clock."""
        file = self.files[one.table.source.file] if one is not None else None
        if one is None or file is None or file.shift_s is None:
            return []
        form, times = Form(one.table.meta["form"]), one.table.columns["from_s"].tolist()
        return [_dated(form, t, self._year, self._day_s) + file.shift_s for t in times]

    def doubt_s(self, one: str, other: str) -> float:
        """How far the order of two files may be off."""
        a, b = self.files[one], self.files[other]
        if one == other:
            return 0.0
        if a.clock is None or b.clock is None or a.clock.shift_s is None or b.clock.shift_s is None:
            return INF
        doubt = a.clock.doubt_s + b.clock.doubt_s
        return ONE_MACHINE_S if a.host and a.host == b.host and math.isfinite(doubt) else doubt

    # Solving: printed zones first, then what two files both tell, then the machine, then an assumption that orders nothing.

    def _solve(self) -> None:
        for file in self.files.values():
            if (offset := file.offset_s) is not None:
                file.clock = Clock(file.file, file.form or "", -offset, UNTIED_S, "it prints its zone", file.host)
        zoned = [f for f in self.files.values() if f.clock is not None]
        self._compare_printed(zoned)
        if not zoned and not self._begun:
            self._refer()
        left = [f for f in self.files.values() if f.clock is None]
        while left:
            found = [(*tied, f) for f in left if f.form and (tied := self._tied(f)) is not None]
            found = found or [(0.0, c, f) for f in left if (c := self._same_machine(f)) is not None][:1]
            if not found:
                break
            _, file_clock, file = max(found, key=lambda t: t[0])
            file.clock = file_clock
            left.remove(file)
        self._assume(left)

    def _refer(self) -> None:
        """No zone is printed anywhere: the log with most steps is the clock, else the file with most dated events."""

        def weight(file: OneClock) -> tuple[int, int]:
            stamps = [e.stamp for e in file.events if e.stamp is not None]
            return len(file.progress.table) if file.progress else 0, sum(s.form is not Form.BOOT for s in stamps)

        best = max(self.files.values(), key=weight, default=None)
        if best is not None:
            known = "the incident is timed by its clock"
            best.clock = Clock(best.file, best.form or "", 0.0, 0.0, known, best.host)

    def _compare_printed(self, zoned: Sequence[OneClock]) -> None:
        """Clocks that print their zones and log the same steps: how far one is off, and the doubt that is left."""
        stepping = [f for f in zoned if f.progress is not None]
        for file in stepping[1:]:
            tie = self._same_steps(file, stepping[0])
            if tie is None or file.clock is None or stepping[0].clock is None:
                continue
            stepping[0].clock = replace(stepping[0].clock, doubt_s=tie.near_s)
            skew = tie.aside_s - (file.shift_s or 0.0)
            file.clock = replace(file.clock, doubt_s=tie.near_s)
            if abs(skew) > max(2.0, 2 * tie.near_s):
                known = f"{tie.what} in {stepping[0].file} too: its clock is {skew:+.0f} s off"
                file.clock = replace(file.clock, shift_s=tie.aside_s, known_by=known)

    def _tied(self, file: OneClock) -> tuple[float, Clock] | None:
        """The zone that explains most of what this file and those already timed both tell; with the weight of that."""
        ties: list[tuple[Tie, str, float]] = [(t, "the flight recorder", 0.0) for t in self._dumped(file)]
        for other in self.files.values():
            if other.clock is not None and other.clock.shift_s is not None and math.isfinite(other.clock.doubt_s):
                ties += [(t, other.file, other.clock.doubt_s) for t in self._ties(file, other)]
        exact = next((t for t in ties if t[0].weight == STEPS), None)
        if exact is not None:
            tie, where, doubt = exact
            return STEPS, Clock(
                file.file, file.form or "", tie.aside_s, tie.near_s + doubt, f"{tie.what} in {where} too", file.host
            )
        if file.form is Form.BOOT:
            if not ties:
                return None
            tie, where, _ = min(ties, key=lambda t: (-t[0].weight, abs(t[0].aside_s)))
            doubt = BOOT_S if tie.weight >= NAMED else INF
            return tie.weight, Clock(file.file, Form.BOOT, tie.aside_s, doubt, f"{tie.what} in {where} too", file.host)
        found = _zone_of([t[0] for t in ties])
        if found is None:
            return None
        zone_s, weight, sure, first = found
        where, doubt = next((where, doubt) for t, where, doubt in ties if t is first)
        known = f"{first.what} in {where} too, a zone of {zone_s / HOUR_S:+g} h"
        return weight, Clock(file.file, file.form or "", zone_s, UNTIED_S + doubt if sure else INF, known, file.host)

    def _ties(self, file: OneClock, other: OneClock) -> Iterator[Tie]:
        if (steps := self._same_steps(file, other)) is not None:
            yield steps
        mine, theirs = self._named(file), self._named(other)
        for key in mine.keys() & theirs.keys():
            what = f"{key[0]} {key[1]}"
            for (at, quoted), (there, quoted_there) in product(mine[key], theirs[key]):
                yield Tie(there - at, what, NAMED, NAMED_S)
                if quoted_there is not None and abs(quoted_there - at) <= NAMED_S:  # of this file's clock, in the other
                    yield Tie(there - quoted_there, f"the time of {what}", NAMED, NAMED_S)
                if quoted is not None and abs(quoted + (other.shift_s or 0.0) - there) <= NAMED_S:
                    yield Tie(there - at, f"the time of {what}", NAMED, NAMED_S)
        yield from self._followed(file, other)

    def _named(self, file: OneClock) -> dict[tuple[str, str], list[tuple[float, float | None]]]:
        """What its lines name that others name too: when, and the time that the line speaks of."""
        found: dict[tuple[str, str], list[tuple[float, float | None]]] = defaultdict(list)
        for event in file.events:
            if event.stamp is not None and (event.stamp.own or event.stamp.quoted_s is not None):
                at = self._local(event, event.stamp)[0] + (file.shift_s or 0.0)
                for key in keys_of(event):
                    found[key].append((at, event.stamp.quoted_s))
        return found

    def _followed(self, file: OneClock, other: OneClock) -> Iterator[Tie]:
        """Faults of a machine, and what its programs say of them in another file."""
        for one, another in product(file.events, other.events):
            if one.stamp is None or another.stamp is None or not (one.stamp.own and another.stamp.own):
                continue
            a, b = rule_of(kind_of(one)), rule_of(kind_of(another))
            cause, effect = (a, b) if a.layer < b.layer else (b, a)
            if not (cause.known and effect.known and cause.explains(effect)) or cause.layer > 3:
                continue
            host = host_of(one, self._hosts)
            if host and host == host_of(another, self._hosts) and effect.domain == cause.domain:
                aside = self._local(another, another.stamp)[0] + (other.shift_s or 0.0) - self._local(one, one.stamp)[0]
                yield Tie(aside, f"what follows {cause.kind} on {host}", FOLLOWS, SOON_S)

    def _dumped(self, file: OneClock) -> Iterator[Tie]:
        """Collectives whose begin a flight recorder has, and a watchdog by how long they ran."""
        for event in file.events:
            sequence, ran = _SEQUENCE.search(event.word("fields")), _RAN.search(event.text)
            if event.stamp is not None and sequence and ran and (begun := self._begun.get(sequence[1])) is not None:
                aside = begun - (self._local(event, event.stamp)[0] - int(ran[1]) / 1e3)
                yield Tie(aside, f"collective {sequence[1]}", NAMED, NAMED_S)

    def _same_steps(self, file: OneClock, other: OneClock) -> Tie | None:
        """The shift that brings its steps on the other's."""
        if file.progress is None or other.progress is None or file is other:
            return None
        ends = dict(zip(other.progress.table.columns["step"].tolist(), self.steps_at(other.progress), strict=False))
        form, columns = Form(file.progress.table.meta["form"]), file.progress.table.columns
        asides = [
            ends[step] - _dated(form, at, self._year, self._day_s)
            for step, at in zip(columns["step"].tolist(), columns["from_s"].tolist(), strict=True)
            if step in ends
        ]
        if len(asides) < SEVERAL:
            return None
        middle = float(np.median(asides))
        near = float(np.median(np.abs(np.array(asides) - middle))) + 1.0
        return Tie(middle, f"{len(asides)} step numbers", STEPS, near)

    def _same_machine(self, file: OneClock) -> Clock | None:
        for other in self.files.values():
            clock = other.clock
            if clock is None or clock.shift_s is None or other.host != file.host or not file.host:
                continue
            if file.form and (clock.form is Form.BOOT) == (file.form is Form.BOOT) and other.offset_s is None:
                doubt = clock.doubt_s + ONE_MACHINE_S
                return Clock(
                    file.file, file.form or "", clock.shift_s, doubt, f"the machine of {other.file}", file.host
                )
        return None

    def _assume(self, left: Sequence[OneClock]) -> None:
        """One zone for what nothing ties: that in which most kinds of faults fall into the time in which the job stood."""
        walls = [f for f in left if f.form not in (Form.BOOT, None)]
        for file in left:
            known = "it counts from a boot whose date is not here" if file.form else "it prints no time"
            file.clock = None if file in walls else Clock(file.file, file.form or "", None, INF, known, file.host)

        def fitting(zone_s: float) -> tuple[float, ...]:
            for file in walls:
                file.clock = Clock(
                    file.file, file.form or "", zone_s, INF, f"its zone is assumed ({zone_s / HOUR_S:+g} h)", file.host
                )
            begin_s, end_s = self.stood()
            roots = [
                (f in walls, kind_of(e), self.placed(e)[0])
                for f in self.files.values()
                for e in f.events
                if e.role is Role.ROOT
            ]
            inside = {(left, kind) for left, kind, at in roots if begin_s - NAMED_S <= at <= end_s + SOON_S}
            after = sum(at > end_s + SOON_S for _, _, at in roots)  # logs are collected when the job has ended
            return len(inside), zone_s % HOUR_S == 0, -after, -abs(zone_s)

        if walls:
            zones = np.arange(-WIDEST_S, WIDEST_S + 1, ZONE_S).tolist()
            fitting(max(zones, key=fitting))

    def of_job(self) -> list[OneClock]:
        """Files that programs wrote: with steps or ranks in them; all where none has."""
        every = list(self.files.values())
        return [f for f in every if f.progress or any(e.scope.rank is not None for e in f.events)] or every

    def stood(self) -> tuple[float, float]:
        """From the last good step of the job to the last line about it, on the incident's clock."""
        main = max((f.progress for f in self.files.values() if f.progress), key=lambda p: len(p.table), default=None)
        times = self.steps_at(main)
        ends = [at for f in self.of_job() for e in f.events if e.role is not Role.CONFIRMATION
                and rule_of(kind_of(e)).layer >= PROCESS and math.isfinite(at := self.placed(e)[0])]  # fmt: skip
        good = times[main.slow or main.good] if main is not None and times else min(ends, default=NAN)
        return good, max([*ends, *times[-1:]], default=NAN)


def _zone_of(ties: Sequence[Tie]) -> tuple[float, float, bool, Tie] | None:
    """The zone, the weight of what speaks for it, whether it is sure, and the nearest tie."""
    support: dict[float, dict[str, Tie]] = defaultdict(dict)
    for tie in ties:
        zone = round(tie.aside_s / ZONE_S) * ZONE_S
        off = abs(tie.aside_s - zone)
        if off <= tie.near_s and abs(zone) <= WIDEST_S:
            known = support[zone].get(tie.what)
            if known is None or off < abs(known.aside_s - zone):
                support[zone][tie.what] = tie
    if not support:
        return None

    def weight(zone: float) -> tuple[float, float]:
        found = support[zone].values()
        return sum(t.weight for t in found) + 0.5 * (zone % HOUR_S == 0), -min(abs(t.aside_s - zone) for t in found)

    zone, *others = sorted(support, key=weight, reverse=True)
    nearest = min(support[zone].values(), key=lambda t: (-t.weight, abs(t.aside_s - zone)))
    alone = not others or weight(zone)[0] > weight(others[0])[0]
    return zone, weight(zone)[0], alone and zone % HOUR_S == 0, nearest


def _dated(form: Form, seconds: float, year: int, day_s: float) -> float:
    if form is Form.YEARLESS and seconds != INF:
        day = date.fromordinal(_NEW_YEAR + int(seconds // DAY_S))
        if (day.month, day.day) == (2, 29):
            year = _LEAP
        return (day.replace(year=year).toordinal() - _EPOCH) * DAY_S + seconds % DAY_S
    return day_s + seconds if form is Form.CLOCK else seconds


def keys_of(event: Event) -> Iterator[tuple[str, str]]:
    """Names of one thing that several files use."""
    for slot, value in event.slots.items():
        if slot.rstrip("_") == "job":
            yield "job", str(value).partition(".")[0]
    for match in _PID.finditer(event.text):
        yield "process", match[1]
    sequence = _SEQUENCE.search(event.word("fields"))
    if sequence is not None:
        yield "collective", sequence[1]


def line_of(event: Event) -> int:
    """Its line in its file."""
    digits = event.source.where.removeprefix("line ").partition("-")[0]
    return int(digits) if digits.isdigit() else 0
