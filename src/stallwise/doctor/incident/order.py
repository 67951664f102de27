"""Which fault came first, what followed from it, and what has nothing to do with it."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from stallwise.doctor.findings.finding import Finding
from stallwise.doctor.findings.incident import Part
from stallwise.doctor.incident.clocks import INF, SOON_S, UNTIED_S, Clocks, keys_of, line_of
from stallwise.doctor.incident.hosts import host_of
from stallwise.doctor.incident.progress import Progress
from stallwise.doctor.incident.rules import (
    BOOT,
    CLEARED,
    GROUP,
    NOTICES,
    REPEATED_CODES,
    TOGETHER_S,
    WITHIN_S,
    KindRule,
    kind_of,
    rule_of,
)
from stallwise.evidence.event import Event, Form, Role, Stamp
from stallwise.evidence.fact import Source

SEVERAL = 2
GAP_S = 3600.0  # between faults: an hour between them makes two stories
STUCK, STRAYED = ("collective-timeout", "collective-timeout-signal"), "rank-strayed"
_UNIT = re.compile(r"GPC (\d+)(?:, TPC (\d+))?")
_ROLES = (Role.ROOT, Role.CASCADE, Role.CONFIRMATION)


@dataclass(slots=True)
class Seen:
    """One line with a meaning, or several of one kind."""

    event: Event
    kind: str
    rule: KindRule
    from_s: float
    to_s: float
    host: str
    part: Part = Part.ROOT
    times: int = 1
    ranks: list[int] = field(default_factory=list)
    of_file: bool = False  # its host is that of its file

    @property
    def place(self) -> tuple[str, str]:
        """Where it stands."""
        return self.event.source.file, self.event.source.where

    @property
    def on(self) -> str:
        """The host that the line is marked with, or that its file is of."""
        return self.host if self.event.scope.node or self.of_file else ""

    @property
    def timed(self) -> bool:
        """Its file's clock is known, or assumed."""
        return self.from_s == self.from_s


class Order:
    """What is known of the order of these lines."""

    def __init__(self, clocks: Clocks) -> None:
        self.clocks = clocks
        self.begin_s, self.end_s = clocks.stood()

    def known(self, one: Seen) -> bool:
        """Its clock is more than an assumption."""
        clock = self.clocks.files[one.event.source.file].clock
        return one.timed and clock is not None and math.isfinite(clock.doubt_s)

    def gap_s(self, one: Seen, other: Seen) -> float:
        """Seconds that lie between them at least; negative where nothing proves that the one came before."""
        gap = other.from_s - one.to_s - self.clocks.doubt_s(one.event.source.file, other.event.source.file)
        if one.event.source.file == other.event.source.file and line_of(one.event) < line_of(other.event):
            return max(gap, 0.0) if not gap < one.from_s - one.to_s else -INF  # a log is written line by line
        return gap if gap > 0 and math.isfinite(gap) else -INF

    def explains(self, one: Seen, other: Seen) -> bool:
        """Whether the other may follow from it: by their kinds, on its host, not before it and not long after."""
        if not one.rule.explains(other.rule):
            return False
        near = one.rule.job or other.rule.layer >= GROUP or not one.host or not other.host or one.host == other.host
        return near and self.gap_s(other, one) <= one.rule.late_s and not (
            one.timed and other.timed and other.from_s - one.to_s > max(one.rule.acts_s, GAP_S)
        )  # fmt: skip

    def aside(self, one: Seen, hosts: Collection[str]) -> bool:
        """Nothing of this incident: long over while the job went well, begun after it, or on a host that is none of the job's."""
        if one.host and hosts and one.host not in hosts and not any(one.host in h or h in one.host for h in hosts):
            return True
        clock = self.clocks.files[one.event.source.file].clock
        doubt = clock.doubt_s if clock is not None and self.known(one) else UNTIED_S
        if not one.timed or math.isnan(self.begin_s):
            return False
        early = math.isfinite(one.to_s) and one.to_s < self.begin_s - one.rule.acts_s - doubt
        return early or (one.rule.layer < GROUP and one.from_s > self.end_s + SOON_S + doubt)

    def cleared(self, one: Seen, seen: Sequence[Seen]) -> bool:
        """Its host was started anew before the job's trouble, and that mends it."""
        return one.rule.domain in CLEARED and any(
            boot.kind == BOOT
            and boot.host == one.host
            and self.gap_s(one, boot) >= 0
            and boot.timed
            and boot.to_s < self.begin_s
            for boot in seen
        )

    def first(self, roots: Sequence[Seen]) -> Seen | None:
        """The earliest of the faults that no other explains; where clocks do not tell, the one nearest to the root."""
        pool = [r for r in roots if not any(o is not r and self.explains(o, r) for o in roots)] or list(roots)
        pool = [r for r in pool if self.known(r)] or [r for r in pool if r.timed] or pool
        pool = [r for r in pool if not any(self.gap_s(o, r) >= 0 for o in pool)] or pool
        return min(
            pool,
            key=lambda r: (r.rule.layer, r.from_s if r.timed else INF, r.rule.place, line_of(r.event)),
            default=None,
        )

    def follows(self, one: Seen, first: Seen) -> bool:
        """Whether it is put down to the first fault."""
        if one is first or one.part in (Part.SEPARATE, Part.NOTICE) or self.gap_s(one, first) > first.rule.late_s:
            return False
        same_host = not one.host or not first.host or one.host == first.host
        alike = one.kind == first.kind and (first.rule.job or same_host)
        close = not (one.timed and first.timed) or one.from_s - first.from_s <= GAP_S
        twins = close and same_host and one.rule.domain == first.rule.domain and one.rule.layer >= first.rule.layer
        named = bool(set(keys_of(one.event)) & set(keys_of(first.event)))
        return one.part is Part.CASCADE or alike or twins or named or self.explains(first, one)


def seen_in(events: Sequence[Event], clocks: Clocks, hosts: dict[str, str], worded: Collection[Source]) -> list[Seen]:
    """One a line: of several meanings the one nearest to the root. Kinds without a rule are faults where nothing else is one."""
    nearest: dict[tuple[str, str], Event] = {}
    for event in sorted(events, key=lambda e: (e.role is not Role.ROOT, rule_of(kind_of(e)).place)):
        if event.role in _ROLES and (event.role is not Role.CONFIRMATION or event.kind in NOTICES):
            nearest.setdefault((event.source.file, event.source.where), event)
    found = []
    for event in sorted(nearest.values(), key=lambda e: (e.source.file, line_of(e))):
        kind = kind_of(event)
        if kind.endswith(".corrected"):
            continue
        from_s, to_s = clocks.placed(event)
        host = host_of(event, hosts)
        part = Part.ROOT if event.role is Role.ROOT else Part.CASCADE
        part = Part.NOTICE if kind in NOTICES else part
        ranks = [event.scope.rank] if event.scope.rank is not None else []
        of_file = hosts.get(event.source.file) == host
        found.append(Seen(event, kind, rule_of(kind), from_s, to_s, host, part, 1, ranks, of_file))
    ruled = any(s.part is Part.ROOT and s.rule.known for s in found)
    found = [s for s in found if s.part is not Part.ROOT or s.rule.known or (not ruled and s.event.ends_log)]
    return _cards_or_programs(_folded(found, worded))


def _folded(seen: list[Seen], worded: Collection[Source]) -> list[Seen]:
    """Repeats of one kind in one file on one host and card within an hour are one, but for lines that have words of their own."""
    last: dict[tuple[object, ...], Seen] = {}
    kept = []
    for one in seen:
        own = one.event.source if one.event.source in worded else None
        key = (one.event.source.file, one.kind, one.host, one.event.word("bus"), one.event.word("code"), own)
        earlier = last.get(key)
        since = (
            one.event.stamp.from_s - earlier.event.stamp.from_s
            if one.event.stamp and earlier and earlier.event.stamp
            else 0.0
        )
        if earlier is not None and abs(since) <= GAP_S:
            earlier.times += 1
            earlier.ranks += [r for r in one.ranks if r not in earlier.ranks]
            continue
        last[key] = one
        kept.append(one)
    return kept


def _cards_or_programs(seen: list[Seen]) -> list[Seen]:
    """A program's fault that one unit of one card repeats is the card's; on two cards at once it is the program's."""
    units: dict[tuple[str, str, str], list[Seen]] = {}
    for one in seen:
        match = _UNIT.search(one.event.text)
        if one.kind == "driver-error.program" and one.event.word("code") in REPEATED_CODES and match is not None:
            units.setdefault((one.host, one.event.word("bus"), match[0]), []).append(one)
    for (host, bus, _), same in units.items():
        stamps = [s.event.stamp.from_s for s in same if s.event.stamp is not None]
        often = sum(s.times for s in same) >= SEVERAL
        elsewhere = any(
            h == host and b != bus and any(
                abs(t.event.stamp.from_s - at) <= TOGETHER_S for t in others if t.event.stamp for at in stamps
            )
            for (h, b, _), others in units.items()
        )  # fmt: skip
        if often and not elsewhere and (not stamps or max(stamps) - min(stamps) <= WITHIN_S):
            for one in same:
                one.kind, one.rule = "driver-error.card", rule_of("driver-error.card")
    return seen


def strayed(
    seen: Sequence[Seen], progress: Sequence[Progress], clocks: Clocks, hosts: dict[str, str], parted: bool
) -> Seen | None:
    """Ranks hang and none has a fault: one that did something else after the last common step is where they parted."""
    busy = [p for p in progress if p.table.meta.get("after")]
    few = parted or (len(progress) >= SEVERAL and len(busy) * 2 <= len(progress))
    if not busy or not few or not any(s.kind in STUCK for s in seen):
        return None
    one = min(busy, key=lambda p: p.table.meta["after"][0][2])
    line, text, from_s, to_s = one.table.meta["after"][0]
    file, meta = one.table.source.file, one.table.meta
    stamp = Stamp(from_s, to_s, Form(meta["form"]), meta["offset_s"])
    event = Event(STRAYED, "", text, Source(file, f"line {line}"), stamp=stamp)
    return Seen(event, STRAYED, rule_of(STRAYED), *clocks.placed(event), hosts.get(file, ""))


def by_diagnosis(seen: Sequence[Seen], findings: Sequence[Finding]) -> Seen | None:
    """No fault of its own: the earliest line that the diagnosis rests on."""
    rests = {(s.file, s.where) for f in findings[:1] for r in f.because for s in r.sources}
    mine = [s for s in seen if s.place in rests and s.part is Part.CASCADE]
    return min(mine, key=lambda s: (s.from_s if s.timed else INF, line_of(s.event)), default=None)
