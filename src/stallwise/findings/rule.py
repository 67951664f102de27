"""A rule: one cause, the quantities it looks at, and the function that judges them.

File name = function name = cause (dashes to underscores). The module's docstring is the page that `stallwise explain`
prints; EXPLAINS and CLUES beside the function feed the differential, and `advise` (optional) says what to do with the
cause while it is only suspected: its Finding's confidence is replaced by the differential's probability. Nothing is registered: discovery walks `rules`.
"""  # noqa: E501

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from inspect import cleandoc

from stallwise.evidence.evidence import Evidence
from stallwise.evidence.fact import Scope
from stallwise.evidence.quantity import Quantity
from stallwise.findings.clue import Clue
from stallwise.findings.finding import Finding, Unknown
from stallwise.findings.owned import Owned
from stallwise.findings.symptom import Often, Symptom

Verdict = Finding | Unknown | None
Judge = Callable[[Evidence], Finding | list[Finding] | None]
Advise = Callable[[Evidence], Finding]


@dataclass(frozen=True, slots=True)
class Rule:
    """A cause and how to see it."""

    cause: str
    family: str
    judge: Judge
    needs: tuple[Quantity, ...]
    per: str | None  # a Scope label: judge each kernel, gpu or rank by itself
    page: str
    explains: Mapping[Symptom, Often]
    clues: tuple[Clue, ...]
    in_trace: Rule | None = None  # the same cause seen over a whole run, where `judge` looks at one kernel
    owns: Owned | None = None  # the part of a step that is this cause's own
    advise: Advise | None = None  # what to say while the cause is only suspected: fixes with their numbers here

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
        if missing:
            captures = tuple(dict.fromkeys(q.from_ for q in missing if q.from_))
            return [Unknown(self.cause, tuple(q.name for q in missing), captures)] if scope is None else []
        answer = self.judge(evidence)
        found = answer if isinstance(answer, list) else [answer] if answer else []
        return [replace(f, cause=self.cause, family=self.family, scope=scope or f.scope) for f in found]


def rule(*needs: Quantity, per: str | None = None) -> Callable[[Judge], Rule]:
    """Turns a judging function into a Rule; the rest is read off its module."""

    def bind(judge: Judge) -> Rule:
        return Rule(
            cause=judge.__name__.replace("_", "-"),
            family=judge.__module__.split(".")[-2],
            judge=judge,
            needs=needs,
            per=per,
            page=cleandoc(sys.modules[judge.__module__].__doc__ or ""),
            explains={},
            clues=(),
        )

    return bind
