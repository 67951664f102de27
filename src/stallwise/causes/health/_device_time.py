"""What the proofs about traces share: how much of the clean whole the device worked."""

from __future__ import annotations

from stallwise.evidence.catalog import step as s
from stallwise.evidence.evidence import Evidence
from stallwise.evidence.ledger import Category, Ledger
from stallwise.evidence.step_time import run_ledger

LOST = (
    Category.INPUT_WAIT,
    Category.LAUNCH_GAP,
    Category.HOST_WAIT,
    Category.COPY,
    Category.BUBBLE,
    Category.CHECKPOINT,
    Category.OTHER,
    Category.COMMUNICATION,
)


def busy_share(evidence: Evidence) -> float | None:
    """Of the whole, after the profiler's own cost, of the rank that is busy least; None without device time."""
    ledger = run_ledger(evidence)
    if ledger is None or not ledger.whole_s or Category.COMPUTE not in ledger.seconds or not evidence.all(s.BUSY_TIME):
        return None
    ranks = {
        x.scope: x for x in evidence.ledgers if x.scope.rank is not None and x.unit == ledger.unit and x.whole_s > 0
    }
    return min(_busy(x) for x in (ledger, *ranks.values()))


def _busy(ledger: Ledger) -> float:
    return 1.0 - sum(ledger.seconds.get(a, 0.0) for a in LOST) / ledger.whole_s
