"""The typical rank: where several ranks were traced, facts about steps are also given for the run as a whole."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import mean, median

from stallwise.doctor.measures._replay_range import ranges_of
from stallwise.evidence.catalog import step as catalog
from stallwise.evidence.evidence import Evidence, Item
from stallwise.evidence.fact import WHOLE, Fact, Source
from stallwise.evidence.ledger import Category, Ledger
from stallwise.evidence.quantity import Quantity
from stallwise.units import Unit

ORDER = 5


def from_evidence(evidence: Evidence) -> Iterator[Item]:
    """One ledger of means, seconds as means like it, and medians of everything else."""
    of_ranks = [x for x in evidence.ledgers if x.scope.rank is not None]
    if len({x.scope.rank for x in of_ranks}) < 2 or any(not x.scope.to_dict() for x in evidence.ledgers):
        return
    source = Source(f"{len(of_ranks)} ranks")
    categories = {a for x in of_ranks for a in x.seconds}
    seconds = {a: mean(x.seconds.get(a, 0.0) for x in of_ranks) for a in Category if a in categories}
    samples, unit = min(x.samples for x in of_ranks), of_ranks[0].unit
    yield Ledger(seconds, source, WHOLE, samples, unit, ranges=ranges_of(seconds))
    for quantity in (q for q in vars(catalog).values() if isinstance(q, Quantity)):
        facts = [f for f in evidence.all(quantity) if f.scope.rank is not None]
        if len(facts) > 1:
            yield _typical(quantity, facts, source)


def _typical(quantity: Quantity, facts: list[Fact], source: Source) -> Fact:
    if any(isinstance(f.value, str) for f in facts):
        words = [str(f.value) for f in facts]
        return Fact(quantity, max(set(words), key=words.count), source)
    low = [f.low for f in facts if f.low is not None]
    high = [f.high for f in facts if f.high is not None]
    # Seconds are parts of the step that the ledger sums to; counts and shares are those of a usual rank.
    middle = mean if quantity.unit is Unit.SECOND else median
    return Fact(
        quantity,
        middle(f.number for f in facts),
        source,
        samples=sum(f.samples for f in facts),
        low=middle(low) if low else None,
        high=middle(high) if high else None,
    )
