"""One answer: the fault that came first leads the diagnosis where an incident proves it."""

from __future__ import annotations

from dataclasses import replace

from stallwise.doctor.findings.diagnosis import Diagnosis, State
from stallwise.doctor.findings.finding import EVEN_ODDS, Finding, Fix, Reason
from stallwise.doctor.findings.incident import Incident, Part, Row
from stallwise.doctor.incident.build import incident_of
from stallwise.doctor.table import table_of

SURE = 0.9  # of a fault that a driver, a kernel or a scheduler states
ASIDE = 0.4  # of what follows from the first fault, or has nothing to do with it
NO_CAUSE = "none"


def with_incident(diagnosis: Diagnosis) -> Diagnosis:
    """The diagnosis with its incident, and with the first fault's finding in front."""
    incident = incident_of(diagnosis.evidence, diagnosis.findings)
    if incident is None:
        return diagnosis
    first = incident.first
    if first is None or first.part is not Part.ROOT or diagnosis.state is State.HEALTHY:
        return replace(diagnosis, incident=incident)
    aside = {(r.source.file, r.source.where) for r in incident.rows if r.part is Part.SEPARATE}
    followed = {(r.source.file, r.source.where) for r in incident.rows if r.caused_by is not None}
    lead = _lead(tuple(f for f in diagnosis.findings if not _rests_on(f, aside)), first, incident)
    if lead is None:
        return replace(diagnosis, incident=incident)
    seen = lead.cause  # the fault; what explains it leads
    lead = next((f for f in diagnosis.findings if seen in f.explains and f.confidence >= EVEN_ODDS), lead)
    rest = tuple(f for f in diagnosis.findings if f is not lead and f.cause != lead.cause)
    own = [f for f in rest if not _rests_on(f, aside) and not _rests_on(f, followed)]
    rest = (*own, *(replace(f, confidence=min(f.confidence, ASIDE)) for f in rest if f not in own))
    owned = replace(lead, owner=incident.owner if incident.owner != NO_CAUSE else "")
    return replace(
        diagnosis,
        incident=replace(incident, cause=lead.cause),
        findings=(owned, *rest),
        hypotheses=table_of((owned, *rest), None),
        ranked=tuple(dict.fromkeys((lead.cause, *(f.cause for f in rest), *diagnosis.ranked))),
        state=State.SICK,
        in_set=(),
        tree=(),  # what one asks first of a slow job
        next=tuple(n for n in diagnosis.next if n.capture in owned.next),
    )


def _rests_on(finding: Finding, lines: set[tuple[str, str]]) -> bool:
    """Whether a finding has no other ground than these lines."""
    grounds = [(s.file, s.where) for r in finding.because for s in r.sources]
    return bool(grounds) and all(g in lines for g in grounds)


def _lead(findings: tuple[Finding, ...], first: Row, incident: Incident) -> Finding | None:
    """The finding of the fault's cause, else one that cites its line, else one made of it."""
    fixed = (Fix(incident.action),) if incident.action else ()
    by_cause = next((f for f in findings if f.cause == incident.cause), None)
    if by_cause is not None:
        return replace(by_cause, confidence=max(by_cause.confidence, SURE), fixes=by_cause.fixes or fixed)
    cites = next((f for f in findings if _cites(f, first)), None)
    if cites is not None and not incident.cause:
        return cites
    if not incident.cause:
        return None
    where = f" on {first.host}" if first.host else ""
    return Finding(
        headline=f"The first fault{where}: {first.sentence}", confidence=SURE, because=(Reason(first.sentence, (first.source,)),),
        cause=incident.cause, family="health", fixes=fixed, blocking=True,
    )  # fmt: skip


def _cites(finding: Finding, first: Row) -> bool:
    return any(
        s.file == first.source.file and s.where == first.source.where for r in finding.because for s in r.sources
    )
