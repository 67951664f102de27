"""Garbage collection in the loop, while only suspected."""

from __future__ import annotations

from stallwise.evidence.capture import GC_LOG, PY_SPY
from stallwise.evidence.catalog import change, run, stages
from stallwise.evidence.evidence import Evidence
from stallwise.evidence.ledger import Account
from stallwise.findings.clue import Clue, above, yes
from stallwise.findings.finding import Finding, Fix, Gain, Reason
from stallwise.findings.owned import Owned
from stallwise.findings.symptom import Symptom

EXPLAINS = {
    Symptom.PERIODIC_STALL: "often",
    Symptom.GRADUAL_SLOWDOWN: "at times",
    Symptom.SUDDEN_SLOWDOWN: "seldom",
    Symptom.SLOW_STEP: "seldom",
    Symptom.SLOW_SCALING: "at times",
    Symptom.LOW_GPU_UTILISATION: "at times",
}


def _rare_and_regular(evidence: Evidence) -> bool | None:
    """Full collections come after a fixed number of allocations: a long, steady period."""
    return evidence.value(change.STALL_PERIOD) > 20 and evidence.value(change.STALL_REGULARITY) > 0.6


OWNS = Owned(Account.HOST_WAIT, (stages.COLLECTION,), right=0, of=0, whole_account=False)

CLUES = (
    above(change.STALL_AT_GC, 0.5, "decisive, needed", "slow steps coincide with full collections", "slow steps fall between collections"),
    above(run.GC_COLLECTIONS, 1, "strong", "full collections are logged inside the loop"),
    yes(run.GC_AUTOMATIC, "fair, needed", "automatic collection is on and nothing is frozen", "automatic collection is off or frozen"),
    Clue((change.STALL_PERIOD, change.STALL_REGULARITY), _rare_and_regular, "hint",
         "slow steps come rarely and at a steady period", "slow steps come often or at random"),
    above(change.STALL_AT_SAVE, 0.6, "against", "slow steps come with the saves"),
    above(change.STALL_AT_EVAL, 0.6, "against", "slow steps come with evaluations"),
    above(change.STALL_IN_DATA, 0.5, "against", "slow steps wait for data"),
)  # fmt: skip


def advise(evidence: Evidence) -> Finding:
    """Collect at chosen steps on all ranks together."""
    pause, period, excess = (evidence.get(q) for q in (run.GC_PAUSE, change.STALL_PERIOD, change.STALL_EXCESS))
    share = evidence.get(change.STALL_SHARE)
    slow = excess or pause
    cost_s = slow.number / period.number if slow and period and period.number > 0 else float("nan")
    gain = Gain(0.7 * cost_s, cost_s, "the slow steps' excess, spread over a period") if cost_s > 0 else None
    because = [Reason.of(f"one full collection takes {pause}", pause)] if pause else []
    if excess and period:
        because.append(
            Reason.of(
                f"about every {period} steps one takes {excess} longer{f', {share} of all time' if share else ''}",
                excess,
                period,
            )
        )
    return Finding(
        headline="Python's garbage collector stops the loop now and then.",
        confidence=0.0,
        because=tuple(because),
        gain=gain,
        fixes=(
            Fix("gc.disable() and gc.collect(1) at the same chosen steps on every rank", gain, worth="no surprise pauses; ranks pause together", cost="two lines",
                risk="cycles pile up between collections"),
            Fix("gc.freeze() after set-up, so that long-lived objects are not walked again", worth="shorter collections", cost="one line", risk="frozen cycles are never freed"),
            Fix("Raise the thresholds: gc.set_threshold(50000, 50, 50)", worth="fewer full collections", cost="one line", risk="memory grows a little"),
        ),
        avoid="Hunting for slow storage or network: the pause has no input, output or collective in it.",
        next=(GC_LOG, PY_SPY),
    )  # fmt: skip
