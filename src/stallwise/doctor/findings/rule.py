"""A rule: one cause, the quantities it looks at, and the function that judges them.

File name = function name = cause (dashes to underscores), and beside `cause.py` stands `cause.toml` with all that is data. The
module's docstring is the page that `stallwise explain` prints; CLUES beside the function feed the classifier, and `advise`
(optional) says what to do with the cause while it is only suspected: its Finding's confidence is replaced by the
probability that the cause is recognised with. Nothing is registered: discovery walks `rules`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from importlib import import_module
from inspect import cleandoc
from typing import Any

from stallwise.doctor.findings.clue import Clue
from stallwise.doctor.findings.finding import Finding, Unknown
from stallwise.doctor.findings.symptom import Often, Symptom
from stallwise.evidence.evidence import Evidence
from stallwise.evidence.fact import Scope
from stallwise.evidence.inputs import Inputs
from stallwise.evidence.ledger import Category
from stallwise.evidence.quantity import Quantity

Verdict = Finding | Unknown | None
Judge = Callable[[Evidence], Finding | list[Finding] | None]
Advise = Callable[[Evidence], Finding]


@dataclass(frozen=True, slots=True)
class Owned:
    """The part of a step that a cause owns: where its time shows, and how often it was the cause where much time showed there."""

    category: Category
    parts: tuple[Quantity, ...]  # seconds of a step, by whichever name they were timed
    right: int  # cases (H200 runs with a measured fix, public incidents) with a tenth of the step there that were this cause
    of: int  # all cases with as much there
    shares: tuple[Quantity, ...] = ()  # the same as a part of the step
    bursts: tuple[Quantity, ...] = ()  # of the shares: what falls into a few late steps, which another cause owns
    whole_category: bool = True  # False: only the named parts are its own, not all that the account holds

    @property
    def confidence(self) -> float:
        """The mean of what the counts leave open, before which nothing was known."""
        return (self.right + 1) / (self.of + 2)


@dataclass(frozen=True, slots=True)
class Rule:
    """A cause and how to see it."""

    cause: str
    family: str
    judge: Judge
    needs: tuple[Quantity, ...]
    per: str | None  # a Scope label: judge each kernel, gpu or rank by itself
    explains: Mapping[Symptom, Often] = field(default_factory=dict)
    clues: tuple[Clue, ...] = ()
    in_trace: Rule | None = None  # the same cause seen over a whole run, where `judge` looks at one kernel
    owns: Owned | None = None  # the part of a step that is this cause's own
    advise: Advise | None = None  # what to say while the cause is only suspected: fixes with their numbers here
    reads: Inputs | None = None  # all that `judge` can look at; where none of it is there it is not called, nor loaded
    owner: str = ""  # who can mend it
    seen: str = ""  # what a person sees of it
    thresholds: tuple[Mapping[str, Any], ...] = ()  # single numbers that name the cause by themselves
    instead: tuple[Quantity, ...] = ()  # any of these does in the place of all that it needs
    preview: bool = False  # no case on record yet: proved, not recognised, not asked about and not drilled

    @property
    def page(self) -> str:
        """What `explain` prints."""
        return cleandoc(import_module(self.judge.__module__).__doc__ or "")

    def can_judge(self, evidence: Evidence) -> bool:
        """Whether all that it needs is there, so that its silence says something."""
        parts = [evidence.within(s) for s in evidence.scopes(self.per)] if self.per else [evidence]
        return bool(self.needs) and any(all(part.all(q) for q in self.needs) for part in parts)

    def verdicts(self, evidence: Evidence) -> list[Finding | Unknown]:
        """What this rule says; empty when the cause is not there."""
        if self.per is None:
            return self._judge(evidence, None)
        found: list[Finding | Unknown] = []
        if self.in_trace is not None:
            seen = self.in_trace.verdicts(evidence)
            found += [replace(f, cause=self.cause, family=self.family) for f in seen if isinstance(f, Finding)]
        for scope in evidence.scopes(self.per):
            found += self._judge(evidence.within(scope), scope)
        return found

    def _judge(self, evidence: Evidence, scope: Scope | None) -> list[Finding | Unknown]:
        missing = [q for q in self.needs if not evidence.all(q)]
        if missing and not any(evidence.all(q) for q in self.instead):
            captures = tuple(dict.fromkeys(q.from_ for q in missing if q.from_))
            return [Unknown(self.cause, tuple(q.name for q in missing), captures)] if scope is None else []
        if self.reads is not None and not self.reads.present(evidence):
            return []
        answer = self.judge(evidence)
        found = answer if isinstance(answer, list) else [answer] if answer else []
        return [replace(f, cause=self.cause, family=self.family, scope=scope or f.scope) for f in found]


def rule(*needs: Quantity, per: str | None = None, instead: tuple[Quantity, ...] = ()) -> Callable[[Judge], Rule]:
    """Turns a judging function into a Rule; what is data about it stands in the file beside."""

    def bind(judge: Judge) -> Rule:
        return Rule(
            judge.__name__.replace("_", "-"), judge.__module__.split(".")[-2], judge, needs, per, instead=instead
        )

    return bind
