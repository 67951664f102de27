"""Two runs side by side show that nothing became worse, never by themselves that either is fast.

Refuted by: any quantity that both tell and that became worse, not only times and rates; so it never speaks for the run.
"""

from __future__ import annotations

from stallwise.causes.health._second_number import SAME, got_worse
from stallwise.doctor.findings.finding import Reason
from stallwise.doctor.findings.proof import Proof
from stallwise.doctor.findings.step_facts import percent
from stallwise.evidence.capture import TORCH_TRACE
from stallwise.evidence.catalog import change, run
from stallwise.evidence.evidence import Evidence
from stallwise.evidence.fact import Fact
from stallwise.evidence.quantity import Quantity

RATES = (run.MFU, run.TOKENS_PER_S, run.SAMPLES_PER_S, run.FLOP_RATE)


def two_runs(evidence: Evidence) -> Proof | None:
    """Now against before, for whatever both tell."""
    pairs = [(q, *both, _worse(evidence, q)) for q in (run.STEP_TIME, *RATES) for both in _both(evidence, q)]
    if not pairs:
        return None
    quantity, then, now, worse = max(pairs, key=lambda pair: pair[3])
    summary = f"{quantity.meaning}: {now} where it was {then}"
    other = got_worse(evidence)
    if other is not None and other.number - 1.0 > worse:
        return _other(other)
    fell = worse > SAME
    return Proof(
        of="two runs",
        says=summary,
        because=(Reason.of(summary, now, then),),
        confidence=0.7,
        lacks=f"{summary}, {_by(quantity, worse)}."
        if fell
        else f"{summary}: no worse, which does not tell whether it is fast.",
        objects=fell,
        next=(TORCH_TRACE,),
        covers_run=False,
    )


def _by(quantity: Quantity, worse: float) -> str:
    """A rate that fell to a half is 50% lower, not 100% worse; a time that doubled is 100% longer."""
    return f"{percent(1.0 - 1.0 / (1.0 + worse))} lower" if quantity in RATES else f"{percent(worse)} longer"


def _other(ratio: Fact) -> Proof:
    """Something else became worse by more than times and rates did."""
    summary = f"{ratio.scope.layer}: {ratio} as bad as before"
    return Proof(
        of="two runs", says=summary, because=(Reason.of(summary, ratio),), confidence=0.7, lacks=f"{summary}.", objects=True,
        next=(TORCH_TRACE,), covers_run=False,
    )  # fmt: skip


def _both(evidence: Evidence, quantity: Quantity) -> list[tuple[Fact, Fact]]:
    then = evidence.get(quantity, run="before")
    now = next((f for f in evidence.all(quantity) if f.scope.run is None), None)
    return [(then, now)] if then is not None and now is not None and then.number > 0 and now.number > 0 else []


def _worse(evidence: Evidence, quantity: Quantity) -> float:
    """By how much, where there was no more to do."""
    return (
        max((f.number for f in evidence.all(change.WORSE_RATIO) if f.scope.layer == quantity.name), default=1.0) - 1.0
    )
