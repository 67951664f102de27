"""What to capture next: what a finding asks for, what separates the causes that are left, what completes a proof."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from stallwise.doctor.findings.diagnosis import Hypothesis, NextStep
from stallwise.doctor.findings.finding import Finding
from stallwise.doctor.findings.proof import Proof
from stallwise.doctor.findings.rule import Rule
from stallwise.doctor.next_step import next_steps
from stallwise.doctor.prove import CLEAR
from stallwise.evidence.capture import Capture
from stallwise.evidence.evidence import Evidence

MOST_ASKED = 5
FEWEST_ASKED = 2  # one artifact may be impossible to get
MOST_OWN = 3  # captures that the findings themselves ask for
HEALTHY = "none"


def captures_of(findings: Sequence[Finding], evidence: Evidence) -> tuple[NextStep, ...]:
    """What the findings themselves ask for."""
    wanted = [(f.cause, f.next) for f in [f for f in findings if f.is_verdict][:2]]
    have = {q.from_ for facts in evidence.facts.values() for q in [facts[0].quantity] if facts and q.from_}
    separates: dict[Capture, list[str]] = {}
    for cause, captures in wanted:
        for capture in captures:
            if capture not in have:
                separates.setdefault(capture, []).append(cause)
    return tuple(NextStep(c, tuple(dict.fromkeys(causes))) for c, causes in separates.items())[:MOST_OWN]


def separating(
    hypotheses: Iterable[Hypothesis], rules: Iterable[Rule], evidence: Evidence, findings: Sequence[Finding]
) -> tuple[NextStep, ...]:
    """What separates the causes best, then what the first of them would like to see."""
    asked = next_steps(hypotheses, rules, evidence)
    known = {step.capture for step in asked}
    first = findings[0] if findings and (findings[0].confidence < CLEAR or len(asked) < FEWEST_ASKED) else None
    own = [NextStep(c, (first.cause,)) for c in first.next if c not in known] if first else []
    return (*asked, *own)[:MOST_ASKED]


def completing(proofs: Sequence[Proof], asks: tuple[NextStep, ...]) -> tuple[NextStep, ...]:
    """What a file of this kind lacks comes first, then what would separate the causes."""
    own = tuple(dict.fromkeys(c for p in proofs for c in p.next))
    by_capture = {step.capture: step for step in asks}
    first = [by_capture.get(c) or NextStep(c, (HEALTHY,)) for c in own]
    return (*first, *(step for step in asks if step.capture not in own))[:MOST_ASKED]
