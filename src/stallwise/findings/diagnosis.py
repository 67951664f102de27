"""The doctor's answer, complete: renderers only lay it out."""

from __future__ import annotations

from dataclasses import dataclass, field

from stallwise.evidence.capture import Capture
from stallwise.evidence.evidence import Evidence
from stallwise.evidence.fact import Note
from stallwise.evidence.ledger import Ledger
from stallwise.evidence.shown import Shown
from stallwise.findings.finding import Finding, Reason, Unknown

SCHEMA = "stallwise.diagnosis/1"


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """A cause that could explain the symptom, with its probability and what speaks for and against it."""

    cause: str
    probability: float
    because: tuple[Reason, ...] = ()
    against: tuple[Reason, ...] = ()


@dataclass(frozen=True, slots=True)
class NextStep:
    """What to capture next and which hypotheses it would separate."""

    capture: Capture
    separates: tuple[str, ...] = ()
    information_bits: float = 0.0


@dataclass(frozen=True, slots=True, eq=False)
class Diagnosis(Shown):
    """Everything a report says."""

    subject: str  # what was looked at, in one line
    healthy: bool
    ranked: tuple[str, ...]
    findings: tuple[Finding, ...]  # best first; gains already capped
    ledger: Ledger | None
    evidence: Evidence
    hypotheses: tuple[Hypothesis, ...] = ()
    unknown: tuple[Unknown, ...] = ()
    next: tuple[NextStep, ...] = ()
    contradictions: tuple[Reason, ...] = ()
    notes: tuple[Note, ...] = ()
    tree: tuple[str, ...] = field(default_factory=tuple)  # the decision tree, narrated

    @property
    def first(self) -> Finding | None:
        """The finding that matters most."""
        return self.findings[0] if self.findings else None
