"""A cause seen in the evidence, with what speaks for it, what it is worth and what to do."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from stallwise.evidence.capture import Capture
from stallwise.evidence.evidence import Evidence
from stallwise.evidence.fact import WHOLE, Fact, Scope, Source
from stallwise.evidence.ledger import Category
from stallwise.evidence.quantity import Quantity
from stallwise.evidence.user_lines import CodeLine

PERHAPS = "Perhaps: "  # opens the headline of what is less likely than all else together
EVEN_ODDS = 0.5  # a prover this sure has found its cause
VERDICT_FROM = 0.7  # of probability: from here on a cause that is only recognised is a verdict


@dataclass(frozen=True, slots=True)
class Rival:
    """Another cause of the same symptom, in the order in which an engineer rules them out: the common one first."""

    cause: str
    less_likely: str  # what speaks for looking at it later
    check: str  # the artifact or command that decides
    ruled_out: Quantity | None = None  # a flag that excludes it
    by: bool = False  # the flag's value that does

    def open(self, evidence: Evidence) -> bool:
        """Whether nothing in the evidence excludes it."""
        fact = evidence.get(self.ruled_out) if self.ruled_out is not None else None
        return fact is None or isinstance(fact.value, str) or bool(fact.number) is not self.by


@dataclass(frozen=True, slots=True)
class Gain:
    """What fixing it is worth: seconds a step (or request), as a range, and how that was found."""

    low_s: float
    high_s: float
    basis: str
    likely_s: float | None = None  # of a replay or a trial: what it won, between the ends
    step_s: float | None = None  # that it was measured against; else the step of the ledger
    beside_s: float = 0.0  # of the high end: what lies outside of the account that the finding claims from

    @property
    def replayed(self) -> bool:
        """Found by replaying the steps without the cause, not by the account it shows in."""
        return self.basis.startswith("replayed")

    @property
    def measured(self) -> bool:
        """Found by trying it in the job itself."""
        return self.basis.startswith("measured:")

    @property
    def middle_s(self) -> float:
        """Half-way between the ends, for ordering."""
        return (self.low_s + self.high_s) / 2

    @property
    def expected_s(self) -> float:
        """What a replay or a trial won; without one, at best."""
        return self.high_s if self.likely_s is None else self.likely_s

    def capped(self, limit_s: float) -> Gain:
        """The same gain, never above what is there to win."""
        likely_s = None if self.likely_s is None else min(self.likely_s, limit_s)
        return replace(self, low_s=min(self.low_s, limit_s), high_s=min(self.high_s, limit_s), likely_s=likely_s)

    def of_step(self, step_s: float) -> Gain:
        """The same part of another step: a trial has steps of its own, the answer has one."""
        if not self.step_s or not step_s > 0:
            return self
        ratio = step_s / self.step_s
        likely_s = None if self.likely_s is None else self.likely_s * ratio
        return replace(self, low_s=self.low_s * ratio, high_s=self.high_s * ratio, likely_s=likely_s, step_s=step_s)


@dataclass(frozen=True, slots=True)
class Fix:
    """One thing to do, with what it wins, costs and risks here."""

    action: str
    gain: Gain | None = None
    worth: str = ""  # where the gain is not seconds: "frees 12 GB", "TTFT 4.2 s -> 0.6 s"
    cost: str = ""
    risk: str = ""


@dataclass(frozen=True, slots=True)
class Reason:
    """One sentence of evidence and the places it points at."""

    text: str
    sources: tuple[Source, ...] = ()

    @classmethod
    def of(cls, text: str, *facts: Fact) -> Reason:
        """A sentence with the sources of the facts it rests on."""
        return cls(text, tuple(dict.fromkeys(f.source for f in facts)))


@dataclass(frozen=True, slots=True)
class Finding:
    """What a rule returns when its cause is there. `cause` is filled in from the rule's own name."""

    headline: str
    confidence: float  # probability that this cause is really there, 0 to 1
    because: tuple[Reason, ...]
    cause: str = ""
    family: str = ""
    scope: Scope = WHOLE
    category: Category | None = None  # the ledger account it claims from
    gain: Gain | None = None
    against: tuple[Reason, ...] = ()
    fixes: tuple[Fix, ...] = ()
    not_here: tuple[Reason, ...] = ()  # what looks bad here and is not
    avoid: str = ""  # the tempting first move that does not help: "do not start here"
    rivals: tuple[Rival, ...] = ()  # what else shows the same symptom, the common first, with the check that decides
    overturn: tuple[str, ...] = ()  # what, if it were so, would speak against it: what would change one's mind
    next: tuple[Capture, ...] = ()
    explains: tuple[str, ...] = ()  # causes that are only consequences of this one
    blocking: bool = False  # the run is dead, stuck or wrong, not merely slow
    ends_in_s: float = math.inf  # the run dies of it after so long if it goes on
    last_resort: bool = False  # says that the run is dead, not why: whatever says why comes before it
    optional: bool = False  # nothing is broken; a gain is there for the taking
    summary: str = ""  # one or two sentences of why, under the headline
    predicted: Gain | None = None  # what was expected before the gain was measured
    tried: str = ""  # the trial that measured it
    recognised: bool = False  # the classifier names it; no prover saw it
    owner: str = ""  # who can mend it: your code, framework, node, network, storage, serving settings
    code_line: CodeLine | None = None  # of the user's, where stacks were sampled and one line holds most of them

    @property
    def is_verdict(self) -> bool:
        """Sure enough to call the run sick: proved at even odds, or recognised well above them."""
        return not self.optional and self.confidence >= (VERDICT_FROM if self.recognised else EVEN_ODDS)

    @property
    def compared(self) -> bool:
        """Whether it rests on files of several ranks or nodes side by side: no text of one of them says that."""
        return len({s.file for reason in self.because for s in reason.sources if s.file and not s.stated}) > 1

    @property
    def basis(self) -> str:
        """What it rests on: measured numbers, numbers that somebody stated, a message, or recognition alone."""
        if self.recognised:
            return "recognised"
        sources = [s for reason in self.because for s in reason.sources]
        if sources and all(s.stated for s in sources):
            return "stated"
        return (
            "event" if sources and all(s.where.startswith("line ") for s in sources) and self.blocking else "measured"
        )


@dataclass(frozen=True, slots=True)
class Unknown:
    """A rule that could not decide, and what it lacked."""

    cause: str
    missing: tuple[str, ...]
    next: tuple[Capture, ...] = ()
