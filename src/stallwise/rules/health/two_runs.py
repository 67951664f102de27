"""Two runs side by side show that nothing became worse, never by themselves that either is fast."""

from __future__ import annotations

from stallwise.evidence.capture import TORCH_TRACE
from stallwise.evidence.catalog import change, run
from stallwise.evidence.evidence import Evidence
from stallwise.evidence.fact import Fact
from stallwise.evidence.quantity import Quantity
from stallwise.findings.finding import Reason
from stallwise.findings.proof import Proof
from stallwise.findings.step_facts import percent

SAME = 0.05  # relative: two runs of the same code differ by this much anyway
RATES = (run.MFU, run.TOKENS_PER_S, run.SAMPLES_PER_S, run.FLOP_RATE)


def two_runs(evidence: Evidence) -> Proof | None:
    """Now against before, for whatever both tell."""
    pairs = [(q, *both, _worse(evidence, q)) for q in (run.STEP_TIME, *RATES) for both in _both(evidence, q)]
    if not pairs:
        return None
    quantity, then, now, worse = max(pairs, key=lambda pair: pair[3])
    said = f"{quantity.meaning}: {now} where it was {then}"
    fell = worse > SAME
    return Proof(
        of="two runs",
        says=said,
        because=(Reason.of(said, now, then),),
        confidence=0.7,
        lacks=f"{said}, {percent(worse)} worse."
        if fell
        else f"{said}: no worse, which does not tell whether it is fast.",
        objects=fell,
        next=(TORCH_TRACE,),
        speaks_for_run=False,
    )


def _both(evidence: Evidence, quantity: Quantity) -> list[tuple[Fact, Fact]]:
    then = evidence.get(quantity, run="before")
    now = next((f for f in evidence.all(quantity) if f.scope.run is None), None)
    return [(then, now)] if then is not None and now is not None and then.number > 0 and now.number > 0 else []


def _worse(evidence: Evidence, quantity: Quantity) -> float:
    """By how much, where there was no more to do."""
    return (
        max((f.number for f in evidence.all(change.WORSE_RATIO) if f.scope.layer == quantity.name), default=1.0) - 1.0
    )
