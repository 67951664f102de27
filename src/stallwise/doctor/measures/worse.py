"""Any quantity that is worse than it was: a before/now pair and its direction are a complaint, whatever the quantity."""

from __future__ import annotations

from collections.abc import Iterator

from stallwise.evidence.catalog import change, quantities, serving, stated
from stallwise.evidence.evidence import Evidence, Item
from stallwise.evidence.fact import Fact, Scope
from stallwise.evidence.quantity import Quantity
from stallwise.units import Unit

BEFORE = "before"
# What a step has to do grows with each, and how long a service's batch takes with who is in it.
WORK = (stated.MICROBATCH, stated.GLOBAL_BATCH, stated.SEQUENCE, serving.CONCURRENCY, serving.OFFERED_RATE)


def from_evidence(evidence: Evidence) -> Iterator[Item]:
    """One ratio above 1 per quantity that got worse."""
    work = more_work(evidence)
    for name, facts in list(evidence.facts.items()):
        quantity = quantities()[name]
        then = next((f for f in facts if f.scope.run == BEFORE and not isinstance(f.value, str)), None)
        if not quantity.better or then is None or then.number <= 0:
            continue
        now = evidence.get(quantity, run=None)
        if now is None or isinstance(now.value, str) or now.number <= 0:
            continue
        ratio = now.number / then.number if quantity.better == "lower" else then.number / now.number
        ratio /= work if quantity.unit is Unit.SECOND or quantity is serving.PER_REQUEST_RATE else 1.0
        if ratio > 1.0:
            yield Fact(change.WORSE_RATIO, ratio, now.source, Scope(layer=name), samples=min(now.samples, then.samples))


def more_work(evidence: Evidence) -> float:
    """How many times as much there is to do as before: ten times the samples may take ten times as long."""
    return max([1.0, *(r for q in WORK if (r := _ratio(evidence, q)) is not None)])


def _ratio(evidence: Evidence, quantity: Quantity) -> float | None:
    then, now = evidence.get(quantity, run=BEFORE), evidence.get(quantity, run=None)
    return now.number / then.number if then is not None and now is not None and then.number > 0 else None
