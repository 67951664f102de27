"""How sure "nothing is wrong" can be: as sure as many rules looked with all they need."""

from __future__ import annotations

import math
from collections.abc import Iterable

from stallwise.evidence.evidence import Evidence
from stallwise.findings.diagnosis import Hypothesis
from stallwise.findings.finding import Reason
from stallwise.findings.rule import Rule

HEALTHY = "none"
UNSEEN = 0.5  # with nothing judged, calm is a coin toss
LOOKS = 5.0  # silent rules that divide the remaining doubt by e
MOST_SURE = 0.97


def health(hypotheses: tuple[Hypothesis, ...], rules: Iterable[Rule], evidence: Evidence) -> tuple[Hypothesis, ...]:
    """The hypotheses of a run without complaint: "none" takes most of what no suspect holds."""
    looked = sum(1 for r in rules if r.needs and all(_seen(evidence, q.name) for q in r.needs))
    calm = min(MOST_SURE, 1.0 - UNSEEN * math.exp(-looked / LOOKS))
    named = [h for h in hypotheses if h.probability and h.cause not in (HEALTHY, "something-else")]
    left = 1.0 - math.fsum(h.probability for h in named)
    because = (Reason(f"{looked} rules had all they need and saw nothing"),)
    found = [*named, Hypothesis(HEALTHY, left * calm, because), Hypothesis("something-else", left * (1.0 - calm))]
    return tuple(sorted(found, key=lambda h: (-h.probability, h.cause)))


def _seen(evidence: Evidence, name: str) -> bool:
    return bool(evidence.facts.get(name))
