"""From events and steps of several files to the rows of an incident."""

from __future__ import annotations

import math
from dataclasses import replace

from stallwise.doctor.findings.finding import Finding
from stallwise.doctor.findings.incident import Before, Incident, Part, Row
from stallwise.doctor.incident.beside import hang_words, hot_cards
from stallwise.doctor.incident.clocks import INF, NAN, Clocks, line_of
from stallwise.doctor.incident.hosts import hosts_of, hosts_of_job
from stallwise.doctor.incident.order import Order, Seen, by_diagnosis, seen_in, strayed
from stallwise.doctor.incident.progress import Progress, progress_of
from stallwise.doctor.incident.rules import KindRule, rule_of
from stallwise.evidence.event import Event, Form, Role, Stamp
from stallwise.evidence.evidence import Evidence
from stallwise.evidence.fact import Source

NO_CLOCK = "no line of these files has a time: nothing can be put in order"
SEVERAL = 2
MOST_ROWS = 60
SHOWN = 160  # characters of a message
MISMATCH = "collective-mismatch"
WAITS = "collective.waits"


def incident_of(evidence: Evidence, findings: tuple[Finding, ...] = ()) -> Incident | None:
    """The incident that several files tell; None where there is one file, or nothing that went wrong."""
    progress = progress_of(evidence)
    events = [e for e in evidence.events if e.role is not Role.ADVICE and e.source.file and not e.source.stated]
    files = {e.source.file for e in events} | {p.table.source.file for p in progress}
    if len(files) < SEVERAL or not any(e.role is not Role.CONFIRMATION for e in events):
        return None
    if not progress and all(e.stamp is None for e in events):
        return Incident(why_none=NO_CLOCK)
    hosts = hosts_of(evidence)
    clocks = Clocks(events, progress, hosts, _begun(evidence))
    words = hang_words(evidence)
    seen, order = seen_in(events, clocks, hosts, words), Order(clocks)
    main = next((p for p in progress if p.slow is not None), None) or max(progress, key=lambda p: p.step, default=None)
    job = hosts_of_job(evidence, hosts)
    for one in seen:
        if one.part is not Part.NOTICE and (order.aside(one, job) or order.cleared(one, seen)):
            one.part = Part.SEPARATE
    first = _first(seen, order, progress, findings, hosts)
    if first is None and main is None:
        return None
    made = _assembled(seen, first, order, main, findings, tuple(hot_cards(evidence, hosts)))
    return replace(made, rows=tuple(replace(r, sentence=words.get(r.source, r.sentence)) for r in made.rows))


def _begun(evidence: Evidence) -> dict[str, float]:
    """When collectives were called, on the clock of flight recorders."""
    return {
        str(int(sequence)): float(time_s)
        for table in evidence.table(WAITS)
        for sequence, time_s in zip(table.columns["sequence"], table.columns["time_s"], strict=True)
        if time_s == time_s
    }


def _first(
    seen: list[Seen], order: Order, progress: list[Progress], findings: tuple[Finding, ...], hosts: dict[str, str]
) -> Seen | None:
    found = order.first([s for s in seen if s.part is Part.ROOT])
    parted = bool(findings) and findings[0].cause == MISMATCH
    if found is None and (one := strayed(seen, progress, order.clocks, hosts, parted)) is not None:
        seen.append(one)
        return one
    return found or by_diagnosis(seen, findings)


def _assembled(
    seen: list[Seen],
    first: Seen | None,
    order: Order,
    main: Progress | None,
    findings: tuple[Finding, ...],
    notices: tuple[Row, ...],
) -> Incident:
    first_s = first.from_s if first is not None and first.timed else INF
    lines = sorted(seen, key=lambda s: (s.from_s if s.timed else first_s, s is not first, line_of(s.event)))[:MOST_ROWS]
    caused = [s for s in lines if first is not None and order.follows(s, first)]
    if first is not None and (last := _last_line(main, lines, order.clocks)) is not None:
        lines.append(last)
        caused.append(last)
    programs = {f.file for f in order.clocks.of_job()}
    end = max(
        (s for s in caused if s.timed), default=None,
        key=lambda s: (s.event.source.file in programs, s.from_s, line_of(s.event)),
    )  # fmt: skip
    rows = [*_progress_rows(main, order.clocks), *(_row(s, first, s in caused, s is end) for s in lines)]
    rows.sort(key=lambda r: (r.from_s if r.from_s == r.from_s else first_s, not r.first))
    at = next((i for i, r in enumerate(rows) if r.first), None)
    rows = [replace(r, caused_by=at) if r.caused_by is not None or r.part is Part.SLOW else r for r in rows]
    rule = first.rule if first is not None else None
    root = first is not None and first.part is Part.ROOT
    owner = rule.owner if rule is not None and root else findings[0].owner if findings else ""
    return Incident(
        rows=(*rows, *notices),
        clocks=tuple(f.clock for f in order.clocks.files.values() if f.clock is not None),
        before=_before(lines, order),
        owner=owner,
        cause=_cause(rule, findings) if rule is not None and root else "",
        action=rule.action if rule is not None and root else "",
        drain=_drained(first, seen) if first is not None and root else (),
        last_good_step=main.step if main is not None else None,
        steps=tuple(zip(order.clocks.steps_at(main), main.seconds, strict=False)) if main else (),
    )


def _cause(rule: KindRule, findings: tuple[Finding, ...]) -> str:
    """Of several pages the one of a finding."""
    causes = rule.cause.split()
    return next((f.cause for f in findings if f.cause in causes), next(iter(causes), ""))


def _drained(first: Seen, seen: list[Seen]) -> tuple[str, ...]:
    """Its host; of a fault that the whole job feels, all that have it."""
    if not first.rule.drain:
        return ()
    same = [s for s in seen if s.part is Part.ROOT and s.kind == first.kind and first.rule.job]
    return tuple(sorted({s.host for s in (first, *same) if s.host}))


def _last_line(main: Progress | None, lines: list[Seen], clocks: Clocks) -> Seen | None:
    """How the job's log ends, where no message is known that says so."""
    if main is None:
        return None
    line, text, from_s, to_s = main.table.meta["last"]
    file, meta = main.table.source.file, main.table.meta
    known = [line_of(s.event) + s.times - 1 for s in lines if s.event.source.file == file]
    if line <= max([int(main.table.columns["line"][-1]), *known]):
        return None
    stamp = Stamp(from_s, to_s, Form(meta["form"]), meta["offset_s"])
    event = Event("last-line", "", text, Source(file, f"line {line}"), Role.CASCADE, stamp=stamp)
    return Seen(event, event.kind, rule_of(event.kind), *clocks.placed(event), "", Part.CASCADE)


def _row(one: Seen, first: Seen | None, caused: bool, ends: bool) -> Row:
    event, part = one.event, one.part
    if one is not first and part is not Part.NOTICE:
        part = Part.END if ends else Part.CASCADE if caused or part is Part.CASCADE else Part.SEPARATE
    stamp = event.stamp
    return Row(
        part=part, kind=one.kind, sentence=event.text[:SHOWN], source=event.source,
        clock=stamp.text if stamp is not None and stamp.own else "", from_s=one.from_s, to_s=one.to_s,
        host=one.host if one is first else one.on,
        rank=event.scope.rank, ranks=tuple(sorted(one.ranks)), gpu=event.word("bus"), times=max(one.times, event.times),
        caused_by=0 if caused else None, by_cause=not one.timed or not math.isfinite(one.to_s), first=one is first,
    )  # fmt: skip


def _progress_rows(main: Progress | None, clocks: Clocks) -> list[Row]:
    if main is None:
        return []
    times = clocks.steps_at(main) or [NAN] * len(main.table)

    def row(part: Part, kind: str, says: str, at: int) -> Row:
        return Row(part, kind, says, main.line(at), "", times[at], times[at])

    usual = f", {main.normal_s:.3g} s a step" if main.normal_s == main.normal_s else ""
    rows = [row(Part.GOOD, "step", f"last good step {main.step}{usual}", main.good)]
    if main.slow is not None:
        says = f"steps take {main.slow_s:.3g} s instead of {main.normal_s:.3g} s"
        rows.append(row(Part.SLOW, "slow-steps", says, main.slow))
    if (last := len(main.table) - 1) > main.good:
        rows.append(row(Part.CASCADE, "step", f"last step in the log: {int(main.table.columns['step'][last])}", last))
    return rows


def _before(lines: list[Seen], order: Order) -> tuple[Before, ...]:
    """What the clocks prove: of each line the latest of those that came before it."""
    found = []
    for at, one in enumerate(lines):
        earlier = [(s, gap) for s in lines[:at] if (gap := order.gap_s(s, one)) >= 0]
        if earlier:
            latest, gap = max(earlier, key=lambda e: e[0].to_s)
            found.append(Before(latest.event.source, one.event.source, gap))
    return tuple(found)
