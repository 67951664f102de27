"""Advice in the words of the framework that the job uses (idioms.toml)."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from stallwise.doctor.findings.finding import Finding, Fix
from stallwise.evidence.evidence import Evidence
from stallwise.tables import table


class Framework(NamedTuple):
    """One that says things in its own way."""

    name: str
    formats: frozenset[str]
    unless: frozenset[str]
    pattern: re.Pattern[str]
    words: dict[str, str]

    def reworded(self, text: str) -> str:
        """The sentence in its words."""
        return self.pattern.sub(lambda m: self.words[m[0]], text)

    def fix(self, fix: Fix) -> Fix:
        """The same thing to do."""
        return replace(
            fix, action=self.reworded(fix.action), cost=self.reworded(fix.cost), risk=self.reworded(fix.risk)
        )


@cache
def frameworks() -> tuple[Framework, ...]:
    """All of the table."""
    rows = table(Path(__file__).with_name("idioms.toml"))["framework"]
    return tuple(_framework(row) for row in rows)


def _framework(row: dict[str, Any]) -> Framework:
    words: dict[str, str] = dict(row["words"])
    longest_first = sorted(words, key=len, reverse=True)
    pattern = re.compile("|".join(map(re.escape, longest_first)))
    return Framework(row["name"], frozenset(row["formats"]), frozenset(row["unless"]), pattern, words)


def in_its_words(findings: tuple[Finding, ...], evidence: Evidence) -> tuple[Finding, ...]:
    """Findings whose advice speaks of the framework that the evidence shows; unchanged where none but PyTorch is seen."""
    seen = frozenset(evidence.formats)
    own = next((f for f in frameworks() if seen & f.formats and not seen & f.unless), None)
    if own is None:
        return findings
    return tuple(
        replace(
            f,
            fixes=tuple(own.fix(fix) for fix in f.fixes),
            avoid=own.reworded(f.avoid),
            summary=own.reworded(f.summary),
        )
        for f in findings
    )
