"""Whether numbers complain where words do not: a quantity that is far worse than it was, or than somebody expected."""

from __future__ import annotations

from collections.abc import Iterator

from stallwise.evidence.catalog import change, expected, quantities, stated
from stallwise.evidence.evidence import Evidence

FAR = 1.25  # times: two runs of one job differ by a few percent, and a quarter is nobody's noise


def fell_short(evidence: Evidence) -> bool:
    """Words that rule troubles out ("no stragglers, loss fine") read healthy; a number that fell does not."""
    return any(times >= FAR for times in _times(evidence))


def _times(evidence: Evidence) -> Iterator[float]:
    """How many times worse each number is than what it is held against."""
    yield from (f.number for f in evidence.all(change.WORSE_RATIO))
    for name, facts in list(evidence.facts.items()):
        quantity = quantities()[name]
        hoped = evidence.get(quantities()[quantity.expected]) if quantity.expected in quantities() else None
        now = next((f for f in facts if f.scope.run is None), None)
        if hoped is not None and now is not None and hoped.number > 0 and now.number > 0:
            yield now.number / hoped.number if quantity.better == "lower" else hoped.number / now.number
    bubble, plain = evidence.value(expected.BUBBLE_OF_STEP), evidence.value(expected.BUBBLE_1F1B)
    yield bubble / plain if plain > 0 else 0.0
    speedup = evidence.value(stated.CUSTOM_SPEEDUP)
    yield 1 / speedup if speedup > 0 else 0.0
