"""From events and steps of several files to the rows of an incident."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace

from stallwise.doctor.findings.finding import Finding
from stallwise.doctor.findings.incident import Before, Incident, Part, Row
from stallwise.doctor.incident.clocks import Clocks, grouped, keys_of, line_of
from stallwise.doctor.incident.hang_words import hang_words
from stallwise.doctor.incident.hosts import hosts_of
from stallwise.doctor.incident.hot_cards import hot_cards
from stallwise.doctor.incident.progress import Progress, progress_of
from stallwise.doctor.incident.rules import KindRule, document, kind_of, rule_of
from stallwise.evidence.event import Event, Role
from stallwise.evidence.evidence import Evidence
from stallwise.evidence.fact import Source
from stallwise.evidence.stamp import Form, Stamp

NO_CLOCK = "no line of these files has a time: nothing can be put in order"
SEVERAL = 2
SLACK_S = 30.0  # a log prints the last good step up to this long after a fault that stops the next
GAP_S = 3600.0  # between faults since one boot: an hour between them makes two stories
MOST_ROWS = 60
STUCK, STRAYED = "collective-timeout", "rank-strayed"
SHOWN = 160  # characters of a message
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
    times: int = 1
    part: Part = Part.ROOT

    @property
    def place(self) -> tuple[str, str]:
        """Where it stands."""
        return self.event.source.file, self.event.source.where


def incident_of(evidence: Evidence, findings: tuple[Finding, ...] = ()) -> Incident | None:
    """The incident that several files tell; None where there is one file, or nothing that went wrong."""
    progress = progress_of(evidence)
    events = [e for e in evidence.events if e.role in _ROLES and e.source.file and not e.source.stated]
    files = {e.source.file for e in events} | {p.table.source.file for p in progress}
    if len(files) < SEVERAL or not any(e.role is not Role.CONFIRMATION for e in events):
        return None
    if not progress and all(e.stamp is None for e in events):
        return Incident(why_none=NO_CLOCK)
    hosts = hosts_of(evidence)
    clocks = Clocks(events, progress, hosts)
    seen = _cards_or_programs(_folded(_seen(events, clocks, hosts)))
    if not seen:
        return None
    timed = _assembled(seen, clocks, progress, findings, hosts, tuple(hot_cards(evidence, hosts)))
    words = hang_words(evidence)
    return timed and replace(
        timed, rows=tuple(replace(r, sentence=words.get(r.source, r.sentence)) for r in timed.rows)
    )


def _seen(events: list[Event], clocks: Clocks, hosts: dict[str, str]) -> list[Seen]:
    """One a line: of several meanings the one nearest to the root."""
    found = []
    for same in grouped(events):
        event = min(same, key=lambda e: (e.role is not Role.ROOT, rule_of(kind_of(e)).place))
        if event.role is Role.CONFIRMATION and event.kind not in document()["notices"]["kinds"]:
            continue
        from_s, to_s = clocks.placed(event)
        kind = kind_of(event)
        host = event.scope.node or hosts.get(event.source.file, "")
        own = hosts.get(event.source.file, "")
        host = own if own and host in own else host
        part = Part.ROOT if event.role is Role.ROOT else Part.CASCADE
        if kind in document()["notices"]["kinds"]:
            part = Part.NOTICE
        found.append(Seen(event, kind, rule_of(kind), from_s, to_s, host, part=part))
    return found


def _folded(seen: list[Seen]) -> list[Seen]:
    """Repeats of one kind in one file on one host and card: the first, with how many there are."""
    first: dict[tuple[object, ...], Seen] = {}
    for one in seen:
        day = one.event.stamp.from_s // GAP_S if one.event.stamp else 0
        key = (
            one.event.source.file,
            one.kind,
            one.host,
            one.event.word("bus"),
            one.event.word("code"),
            one.event.scope.rank,
        )
        earlier = first.get(key)
        near = (
            earlier is not None
            and earlier.event.stamp is not None
            and abs(day - earlier.event.stamp.from_s // GAP_S) <= 1
        )
        if near and earlier is not None:
            earlier.times += 1
            continue
        first[(*key, "again") if earlier is not None else key] = one
        if earlier is not None:
            first[key] = one
    return list({id(s): s for s in first.values()}.values())


def _cards_or_programs(seen: list[Seen]) -> list[Seen]:
    """A program's fault that one unit of one card repeats is the card's; on two cards at once it is the program's."""
    rule = document()["repeats"]
    units: dict[tuple[str, str, str], list[Seen]] = {}
    for one in seen:
        match = _UNIT.search(one.event.text)
        if one.kind == "driver-error.program" and one.event.word("code") in rule["codes"] and match is not None:
            units.setdefault((one.host, one.event.word("bus"), match[0]), []).append(one)
    for (host, bus, _), same in units.items():
        stamps = [s.event.stamp.from_s for s in same if s.event.stamp is not None]
        often = sum(s.times for s in same) >= SEVERAL
        elsewhere = any(
            h == host and b != bus and any(
                abs(t.event.stamp.from_s - at) <= rule["together_s"] for t in others if t.event.stamp for at in stamps
            )
            for (h, b, _), others in units.items()
        )  # fmt: skip
        if often and not elsewhere and (not stamps or max(stamps) - min(stamps) <= rule["within_s"]):
            for one in same:
                one.kind, one.rule = "driver-error.card", rule_of("driver-error.card")
    return seen


def _assembled(
    seen: list[Seen],
    clocks: Clocks,
    progress: list[Progress],
    findings: tuple[Finding, ...],
    hosts: dict[str, str],
    notices: tuple[Row, ...],
) -> Incident | None:
    main = _main(progress, clocks)
    good_s = _when(main, clocks)
    _mark_unrelated(seen, good_s, clocks)
    roots = [s for s in seen if s.part is Part.ROOT]
    first = _first(roots)
    if first is None and (strayed := _strayed(seen, progress, clocks, hosts)) is not None:
        seen.append(strayed)
        first = strayed
    if first is None:
        first = _by_diagnosis(seen, findings)
    if first is None and main is None:
        return None
    caused = {id(s) for s in seen if s is not first and first is not None and _follows(s, first, clocks)}
    rows, order = _rows(seen, first, caused, main, clocks)
    rule = first.rule if first is not None else None
    drained = rule is not None and rule.drain and first is not None and first.part is not Part.CASCADE
    owner = rule.owner if rule is not None else ""
    if first is not None and first.part is Part.CASCADE and findings:
        owner = findings[0].owner
    steps = tuple(zip(clocks.steps_at(main), main.seconds, strict=False)) if main else ()
    return Incident(
        rows=(*rows, *notices),
        clocks=tuple(t.clock for t in clocks.files.values() if t.clock is not None),
        before=_before(order, first, clocks),
        owner=owner,
        cause=rule.cause if rule is not None and first is not None and first.part is Part.ROOT else "",
        action=rule.action if rule is not None else "",
        drain=_drained(first, roots) if drained and first is not None else (),
        last_good_step=main.step if main is not None else None,
        steps=steps,
    )


def _main(progress: list[Progress], clocks: Clocks) -> Progress | None:
    """The log that tells how the job went: one that slowed, else the one with the furthest good step."""
    slowed = [p for p in progress if p.slow is not None]
    return next(iter(slowed), None) or max(progress, key=lambda p: p.step, default=None)


def _when(main: Progress | None, clocks: Clocks) -> float:
    if main is None:
        return float("nan")
    times = clocks.steps_at(main)
    return times[main.good] if times else float("nan")


def _mark_unrelated(seen: list[Seen], good_s: float, clocks: Clocks) -> None:
    """What was long over while the job still went well has nothing to do with it."""
    ends = [s.from_s for s in seen if s.part is not Part.NOTICE and s.from_s == s.from_s]
    until = good_s if good_s == good_s else (max(ends) - GAP_S if ends else float("nan"))
    boots: dict[str, float] = {}
    for one in seen:
        stamp = one.event.stamp
        if stamp is not None and stamp.form is Form.BOOT and one.from_s != one.from_s:
            boots[one.event.source.file] = max(boots.get(one.event.source.file, 0.0), stamp.from_s)
    for one in seen:
        stamp = one.event.stamp
        if one.from_s == one.from_s:
            clock = clocks.files[one.event.source.file].clock
            doubt = clock.doubt_s if clock is not None and math.isfinite(clock.doubt_s) else SLACK_S
            aside = until == until and one.to_s < until - one.rule.acts_s - doubt
            aside = aside and math.isfinite(one.to_s)
        else:
            aside = (
                stamp is not None
                and one.event.source.file in boots
                and boots[one.event.source.file] - stamp.from_s > GAP_S
            )
        if aside and one.part is not Part.NOTICE:
            one.part = Part.SEPARATE


def _first(roots: list[Seen]) -> Seen | None:
    """The earliest of those that no other explains; where clocks do not tell, the one nearest to the root."""
    free = [r for r in roots if not any(o is not r and _explains(o, r) for o in roots)] or roots
    known = [r for r in free if r.from_s == r.from_s]
    unknown = [r for r in free if r.from_s != r.from_s]
    earliest = min(known, key=lambda r: (r.from_s, r.rule.place, line_of(r.event)), default=None)
    nearest = min(unknown, key=lambda r: (r.rule.place, line_of(r.event)), default=None)
    if earliest is None or nearest is None:
        return earliest or nearest
    return nearest if nearest.rule.place < earliest.rule.place else earliest


def _explains(one: Seen, other: Seen) -> bool:
    """Whether the other may follow from it: by its kind, on its host, and not before it."""
    if other.kind not in one.rule.explains or one.kind == other.kind:
        return False
    if not one.rule.anywhere and one.host and other.host and one.host != other.host:
        return False
    late = one.from_s == one.from_s and other.to_s == other.to_s and one.from_s > other.to_s + one.rule.acts_s
    return not late and not (
        other.kind in one.rule.explains and one.kind in other.rule.explains and other.from_s < one.from_s
    )


def _strayed(seen: list[Seen], progress: list[Progress], clocks: Clocks, hosts: dict[str, str]) -> Seen | None:
    """Ranks hang and none has a fault: one that did something else after the last common step is where they parted."""
    if not any(s.kind == STUCK for s in seen) or len(progress) < SEVERAL:
        return None
    busy = [p for p in progress if p.table.meta.get("after")]
    if not busy or len(busy) * 2 > len(progress):
        return None
    one = min(busy, key=lambda p: p.table.meta["after"][0][2])
    line, text, from_s, to_s = one.table.meta["after"][0]
    file, meta = one.table.source.file, one.table.meta
    stamp = Stamp(from_s, to_s, Form(meta["form"]), meta["offset_s"])
    event = Event(STRAYED, "", text, Source(file, f"line {line}"), stamp=stamp)
    placed = clocks.placed(event)
    return Seen(event, STRAYED, rule_of(STRAYED), *placed, hosts.get(file, ""))


def _by_diagnosis(seen: list[Seen], findings: tuple[Finding, ...]) -> Seen | None:
    """No fault of its own: the earliest line that the diagnosis rests on."""
    rests = {(s.file, s.where) for f in findings[:1] for r in f.because for s in r.sources}
    mine = [s for s in seen if s.place in rests and s.part is Part.CASCADE]
    return min(mine, key=lambda s: (s.from_s if s.from_s == s.from_s else math.inf, line_of(s.event)), default=None)


def _follows(one: Seen, first: Seen, clocks: Clocks) -> bool:
    """Whether it is put down to the first fault."""
    if one.part in (Part.SEPARATE, Part.NOTICE) and not _explains(first, one):
        return False
    if one.part is Part.SEPARATE:
        return False
    gap = clocks.doubt_s(first.event.source.file, one.event.source.file)
    if one.to_s == one.to_s and first.from_s == first.from_s and math.isfinite(gap) and one.to_s + gap < first.from_s:
        return False
    alike = one.kind == first.kind and (first.rule.anywhere or one.host == first.host)
    named = bool(set(keys_of(one.event)) & set(keys_of(first.event)))
    return one.part is Part.CASCADE or alike or named or _explains(first, one)


def _drained(first: Seen, roots: list[Seen]) -> tuple[str, ...]:
    hosts = {r.host for r in roots if r.kind == first.kind and r.host} if first.rule.anywhere else {first.host}
    return tuple(sorted(h for h in hosts if h))


def _rows(
    seen: list[Seen], first: Seen | None, caused: set[int], main: Progress | None, clocks: Clocks
) -> tuple[tuple[Row, ...], list[Seen]]:
    """In the order of their earliest times; what has none stands behind its cause."""
    first_s = first.from_s if first is not None else math.nan

    def key(one: Seen) -> tuple[float, int, int]:
        at = one.from_s
        if at != at:
            at = first_s if first_s == first_s else math.inf
        return (at, one is not first, line_of(one.event))

    order = sorted(seen, key=key)[:MOST_ROWS]
    rows = [_row(one, first, caused) for one in order]
    rows = [*_progress_rows(main, clocks), *rows]
    unplaced = first_s if first_s == first_s else math.inf
    rows.sort(key=lambda r: (r.part is not Part.GOOD, r.from_s if r.from_s == r.from_s else unplaced, not r.first))
    at = next((i for i, r in enumerate(rows) if r.first), None)
    rows = [replace(r, caused_by=at) if r.caused_by is not None or r.part is Part.SLOW else r for r in rows]
    return tuple(rows), order


def _row(one: Seen, first: Seen | None, caused: set[int]) -> Row:
    event = one.event
    part = one.part
    if id(one) in caused:
        part = Part.CASCADE
    elif part is Part.ROOT and one is not first:
        part = Part.SEPARATE
    stamp = event.stamp
    return Row(
        part=part, kind=one.kind, sentence=event.text[:SHOWN], source=event.source,
        clock=stamp.text if stamp is not None and stamp.own else "", from_s=one.from_s, to_s=one.to_s, host=one.host,
        rank=event.scope.rank, gpu=event.word("bus"), times=max(one.times, event.times), caused_by=0 if id(one) in caused else None,
        by_cause=one.from_s != one.from_s or not math.isfinite(one.to_s), first=one is first,
    )  # fmt: skip


def _progress_rows(main: Progress | None, clocks: Clocks) -> list[Row]:
    if main is None:
        return []
    times = clocks.steps_at(main) or [math.nan] * len(main.table)
    usual = f", {main.normal_s:.3g} s a step" if main.normal_s == main.normal_s else ""
    rows = [
        Row(
            Part.GOOD,
            "step",
            f"last good step {main.step}{usual}",
            main.line(main.good),
            "",
            times[main.good],
            times[main.good],
        )
    ]
    if main.slow is not None:
        says = f"steps take {main.slow_s:.3g} s instead of {main.normal_s:.3g} s"
        rows.append(Row(Part.SLOW, "slow-steps", says, main.line(main.slow), "", times[main.slow], times[main.slow]))
    last = len(main.table) - 1
    if last > main.good:
        says = f"last step in the log: {int(main.table.columns['step'][last])}"
        rows.append(Row(Part.END, "step", says, main.line(last), "", times[last], times[last]))
    return rows


def _before(order: list[Seen], first: Seen | None, clocks: Clocks) -> tuple[Before, ...]:
    """What the clocks prove of the order of the first fault and the rest."""
    found = []
    for i, one in enumerate(order):
        for other in order[i + 1 :]:
            gap = other.from_s - one.to_s - clocks.doubt_s(one.event.source.file, other.event.source.file)
            if first in (one, other) and math.isfinite(gap) and gap > 0:
                found.append(Before(one.event.source, other.event.source, gap))
    return tuple(found)
