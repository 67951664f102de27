"""The one step time of an answer: the whole of the run's ledger, which is the clean step. Everybody who names a step asks here."""

from __future__ import annotations

from stallwise.evidence.catalog import run, step
from stallwise.evidence.evidence import Evidence
from stallwise.evidence.fact import WHOLE, Scope
from stallwise.evidence.ledger import Ledger

STEPS = ("step", "iteration", "window")  # units of a ledger that are steps; requests and kernels are not


def run_ledger(evidence: Evidence, scope: Scope = WHOLE) -> Ledger | None:
    """The ledger of the run, or of one part of it; without one the ledger of the widest scope that there is.

    Of equals the newest: a corrected ledger comes after the one it corrects.
    """
    mine = [x for x in evidence.ledgers if x.scope == scope] or evidence.ledgers
    return min(reversed(mine), key=lambda x: len(x.scope.to_dict()), default=None)


def step_time_s(evidence: Evidence, scope: Scope = WHOLE) -> float:
    """Seconds of a step; without a ledger as the trace has it, else as a log or a person says. NaN where nobody does."""
    ledger = run_ledger(evidence, scope)
    if ledger is not None and ledger.unit in STEPS and ledger.whole_s > 0:
        return ledger.whole_s
    traced_s = evidence.value(step.STEP_TIME)
    return traced_s if traced_s == traced_s else evidence.value(run.STEP_TIME)
