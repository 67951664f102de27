"""How fast a run was, in whatever measure it tells: a ledger's whole, a step time, a rate, a latency."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from stallwise.doctor.findings.diagnosis import Diagnosis
from stallwise.evidence.catalog import change, quantities, run
from stallwise.evidence.evidence import Evidence
from stallwise.evidence.quantity import Quantity
from stallwise.units import Unit

# What a bundle is judged by, the first that all have: (name in the catalogue, words, larger is better).
METRICS: tuple[tuple[str, str, bool], ...] = (
    ("change.steady_step", "step time", False),
    ("run.step_time", "step time", False),
    ("step.time", "step time", False),
    ("run.tokens_per_s", "tokens a second", True),
    ("run.samples_per_s", "samples a second", True),
    ("run.mfu", "MFU", True),
    ("serve.output_rate", "output tokens a second", True),
    ("serve.generation_rate", "output tokens a second", True),
    ("serve.tpot", "time a token", False),
    ("serve.per_request_rate", "tokens a second and user", True),
    ("serve.ttft", "time to first token", False),
    ("serve.ready_time", "time to ready", False),
)
RATES = frozenset(words for _, words, larger in METRICS if larger)


@dataclass(frozen=True, slots=True)
class Speed:
    """One measure of a run."""

    words: str
    value: float
    unit: Unit
    rate: bool  # more is better


def speeds_of(diagnosis: Diagnosis) -> dict[str, Speed]:
    """Every measure by its words, the most telling first."""
    found: dict[str, Speed] = {}
    ledger = diagnosis.ledger
    if ledger is not None and ledger.whole_s > 0:
        found[f"{ledger.unit} time"] = Speed(f"{ledger.unit} time", ledger.whole_s, Unit.SECOND, rate=False)
    if step_s := any_step_s(diagnosis):
        found.setdefault("step time", Speed("step time", step_s, Unit.SECOND, rate=False))
    for name, words, larger in METRICS:
        quantity = quantities().get(name)
        if quantity is change.STEADY_STEP and not diagnosis.evidence.series(run.STEP_TIME):
            continue  # the inverse of a rate: right as a ratio, no time of a step
        if quantity is not None and words not in found and (value := typical(diagnosis.evidence, quantity)) > 0:
            found[words] = Speed(words, value, quantity.unit, larger)
    return found


def any_step_s(diagnosis: Diagnosis) -> float:
    """A step's time from whatever tells it: a ledger, a log, a trace, the user."""
    if diagnosis.ledger is not None and diagnosis.ledger.unit == "step":
        return diagnosis.ledger.whole_s
    known = quantities()
    named = [known[n] for n in ("step.time", "run.step_time") if n in known]
    return _mean_step_s(diagnosis.evidence) or next((v for q in named if (v := typical(diagnosis.evidence, q))), 0.0)


def _mean_step_s(evidence: Evidence) -> float:
    """Mean step time over the log, slow steps included, warm-up left out."""
    series = evidence.series(run.STEP_TIME)
    if not series or len(series[0].values) < 4:
        return 0.0
    total = float(np.nansum(series[0].values)) - evidence.value(change.FIRST_STEPS_EXCESS, 0.0)
    return total / len(series[0].values)


def typical(evidence: Evidence, quantity: Quantity) -> float:
    """The usual value: the run-wide fact, or the mean over its parts."""
    fact = evidence.get(quantity)
    if fact is None:
        return 0.0
    if not fact.scope.to_dict():
        return fact.number
    numbers = [f.number for f in evidence.all(quantity) if f.number == f.number]
    return float(np.mean(numbers)) if numbers else 0.0
