"""The table of an answer: one row a cause, one probability each, whoever leads."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import replace

from stallwise.doctor.findings.diagnosis import SOMETHING_ELSE, Hypothesis
from stallwise.doctor.findings.finding import EVEN_ODDS, VERDICT_FROM, Finding
from stallwise.doctor.recognise import Ranking

HEALTHY = "none"  # the cause of a run that nothing ails
MOST_SURE = 0.97
JUST_UNSURE = VERDICT_FROM - 0.01


def table_of(findings: Sequence[Finding], ranking: Ranking | None) -> tuple[Hypothesis, ...]:
    """One row a cause: what a prover saw with its own probability, since several may be there at once, then the ranking."""
    if ranking is not None:
        return ranking.hypotheses
    rows: dict[str, Hypothesis] = {}
    consequences = {c for f in findings if f.confidence >= EVEN_ODDS for c in f.explains}
    for f in findings:
        if not f.optional and f.cause not in consequences:
            sure = min(f.confidence, MOST_SURE)
            rows.setdefault(f.cause, Hypothesis(f.cause, sure, f.because, f.against, found=True))
    left = 1.0 - max((h.probability for h in rows.values()), default=0.0)
    return (*rows.values(), Hypothesis(SOMETHING_ELSE, left)) if rows else ()


def unasked(ranking: Ranking, besides: Collection[str] = ()) -> Ranking:
    """Nobody complains, or the text is calm: recognition alone makes no verdict, and what is taken from it may be nothing at all."""
    capped = {h.cause for h in ranking.hypotheses if h.cause != SOMETHING_ELSE and h.cause not in besides}
    over = math.fsum(max(0.0, h.probability - JUST_UNSURE) for h in ranking.hypotheses if h.cause in capped)
    given = {SOMETHING_ELSE: over}
    rows = [
        replace(
            h,
            probability=min(h.probability, JUST_UNSURE)
            if h.cause in capped
            else h.probability + given.get(h.cause, 0.0),
        )
        for h in ranking.hypotheses
    ]
    return replace(ranking, hypotheses=tuple(sorted(rows, key=lambda h: (-h.probability, h.cause))))


def led_by(offer: Finding, hypotheses: Sequence[Hypothesis]) -> tuple[Hypothesis, ...]:
    """An offer that leads the findings leads the table; what else it could be shares the rest as before."""
    sure = min(offer.confidence, MOST_SURE)
    rest = [h for h in hypotheses if h.cause != offer.cause]
    scale = (1.0 - sure) / (math.fsum(h.probability for h in rest) or 1.0)
    first = Hypothesis(offer.cause, sure, offer.because, offer.against, found=True)
    return (first, *(replace(h, probability=h.probability * scale) for h in rest))


def cleared(hypotheses: Sequence[Hypothesis], sure: float) -> tuple[Hypothesis, ...]:
    """The table of a proven run: "none" holds what the proof is sure of, the others share the rest."""
    rest = [h for h in hypotheses if h.cause not in (HEALTHY, SOMETHING_ELSE)]
    total = sum(h.probability for h in rest)
    scale = min(1.0, (1.0 - sure) / total) if total else 0.0
    rest = [replace(h, probability=h.probability * scale) for h in rest]
    left = max(0.0, 1.0 - sure - sum(h.probability for h in rest))
    return (Hypothesis(HEALTHY, sure), *rest, Hypothesis(SOMETHING_ELSE, left))
