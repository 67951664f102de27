"""The examination: evidence in, diagnosis out."""

from __future__ import annotations

from stallwise.doctor.gather import gather
from stallwise.doctor.rank import SURE_ENOUGH, rank
from stallwise.evidence.capture import Capture
from stallwise.evidence.evidence import Evidence
from stallwise.evidence.ledger import Ledger
from stallwise.findings.diagnosis import Diagnosis, NextStep
from stallwise.findings.finding import Finding, Unknown
from stallwise.measures import measure_evidence
from stallwise.rules import all_rules

HEALTHY = "none"


def diagnose(*paths: str) -> Diagnosis:
    """Reads the artifacts and says what stalls."""
    return examine(gather(paths))


def examine(evidence: Evidence) -> Diagnosis:
    """Measures, judges, ranks."""
    measure_evidence(evidence)
    verdicts = [verdict for rule in all_rules() for verdict in rule.verdicts(evidence)]
    ledger = _main_ledger(evidence)
    found = [v for v in verdicts if isinstance(v, Finding)]
    findings = rank([f for f in found if f.scope.kernel is None], ledger)
    kernel_findings = rank([f for f in found if f.scope.kernel is not None], None)
    unknown = tuple(v for v in verdicts if isinstance(v, Unknown))
    healthy = not any(f.confidence >= SURE_ENOUGH and not f.optional for f in findings)
    ranked = tuple(dict.fromkeys(f.cause for f in findings))
    return Diagnosis(
        subject=" + ".join(evidence.formats),
        healthy=healthy,
        ranked=(HEALTHY, *ranked) if healthy else ranked,
        findings=(*findings, *kernel_findings),
        ledger=ledger,
        evidence=evidence,
        unknown=unknown,
        next=_next_steps(findings, unknown),
        notes=tuple(evidence.notes),
    )


def _main_ledger(evidence: Evidence) -> Ledger | None:
    """The run's ledger: the one of widest scope."""
    return min(evidence.ledgers, key=lambda x: len(x.scope.to_dict()), default=None)


def _next_steps(findings: tuple[Finding, ...], unknown: tuple[Unknown, ...]) -> tuple[NextStep, ...]:
    separates: dict[Capture, list[str]] = {}
    wanted = [(f.cause, f.next) for f in findings] + [(u.cause, u.next) for u in unknown]
    for cause, captures in wanted:
        for capture in captures:
            separates.setdefault(capture, []).append(cause)
    return tuple(NextStep(c, tuple(dict.fromkeys(causes))) for c, causes in separates.items())[:3]
