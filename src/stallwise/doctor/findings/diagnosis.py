"""The doctor's answer, complete: renderers only lay it out."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from stallwise.doctor.findings.finding import Finding, Reason, Unknown
from stallwise.doctor.findings.incident import Incident
from stallwise.doctor.findings.proof import Limit, NotUnderstood, Proof, Unexplained
from stallwise.doctor.findings.question import Question
from stallwise.doctor.findings.scene import Scene
from stallwise.doctor.findings.trial import Trials
from stallwise.evidence.capture import Capture
from stallwise.evidence.evidence import Evidence
from stallwise.evidence.fact import Note
from stallwise.evidence.ledger import Ledger
from stallwise.evidence.shown import Shown

SCHEMA = "stallwise.diagnosis/2"


OPEN = "Not known:"  # in a question of the tree that nothing answers yet
SOMETHING_ELSE = "something-else"  # what is left for causes that nobody named


class State(Enum):
    """The three verdicts."""

    SICK = "sick"  # a cause at even odds or better
    HEALTHY = "healthy"  # by proof: every question these artifacts can answer was asked and answered well
    UNCLEAR = "unclear"  # everything else: suspects, what was not understood, what to capture


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """A cause that could be there, with its probability and what speaks for and against it.

    What a prover saw stands with its own probability, since several causes may be there at once; those that are only
    recognised share one.
    """

    cause: str
    probability: float
    because: tuple[Reason, ...] = ()
    against: tuple[Reason, ...] = ()
    by_words_alone: bool = False  # nothing but the words of the inputs speaks for it
    found: bool = False  # a rule has seen it: it takes nothing from other causes that were seen


@dataclass(frozen=True, slots=True)
class NextStep:
    """What to capture next and which hypotheses it would separate."""

    capture: Capture
    separates: tuple[str, ...] = ()
    information_bits: float = 0.0


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Diagnosis(Shown):
    """Everything a report says."""

    subject: str  # what was looked at, in one line
    state: State
    ranked: tuple[str, ...]
    findings: tuple[Finding, ...]  # best first; gains already capped
    ledger: Ledger | None
    evidence: Evidence
    hypotheses: tuple[Hypothesis, ...] = ()
    in_set: tuple[str, ...] = ()  # the 90% set of recognised causes; empty where something is proved
    unknown: tuple[Unknown, ...] = ()
    next: tuple[NextStep, ...] = ()
    contradictions: tuple[Reason, ...] = ()
    notes: tuple[Note, ...] = ()
    tree: tuple[str, ...] = field(default_factory=tuple)  # the decision tree, narrated
    proofs: tuple[Proof, ...] = ()  # what was shown to be well, wholly or in part
    limit: Limit | None = None  # what binds
    unexplained: tuple[Unexplained, ...] = ()  # accounts that no finding explains
    not_understood: NotUnderstood = field(default_factory=NotUnderstood)
    trials: tuple[Trials, ...] = ()  # what was tried in the job itself
    scenes: tuple[Scene, ...] = ()  # steps that can be looked at, the most telling first
    questions: tuple[Question, ...] = ()  # what separates the causes that are left, where none is proved
    why_unclear: str = ""  # one sentence, where the state is unclear
    passed: tuple[str, ...] = ()  # causes whose numbers were all there and show nothing
    incident: Incident | None = None  # of several files: what happened in which order

    def _line(self) -> str:
        first = f": {self.first.cause} ({self.first.confidence:.0%})" if self.first and self.state is State.SICK else ""
        return f"{self.state.value}{first}; {self.subject}"

    @property
    def healthy(self) -> bool:
        """Proven well."""
        return self.state is State.HEALTHY

    @property
    def first(self) -> Finding | None:
        """The finding that matters most."""
        return self.findings[0] if self.findings else None
