"""What the proofs about traces share: how much of the clean whole the device worked."""

from __future__ import annotations

from stallwise.evidence.catalog import step as s
from stallwise.evidence.evidence import Evidence
from stallwise.evidence.ledger import Account, Ledger

LOST = (
    Account.INPUT_WAIT,
    Account.LAUNCH_GAP,
    Account.HOST_WAIT,
    Account.COPY,
    Account.BUBBLE,
    Account.CHECKPOINT,
    Account.OTHER,
    Account.COMMUNICATION,
)


def ledger_of(evidence: Evidence) -> Ledger | None:
    """The run's ledger of device time: the newest of the widest scope."""
    return min(reversed(evidence.ledgers), key=lambda x: len(x.scope.to_dict()), default=None)


def busy_share(evidence: Evidence) -> float | None:
    """Of the whole, after the profiler's own cost; None without device time."""
    ledger = ledger_of(evidence)
    if ledger is None or not ledger.whole_s or Account.COMPUTE not in ledger.seconds or not evidence.all(s.BUSY_TIME):
        return None
    lost = sum(ledger.seconds.get(a, 0.0) for a in LOST)
    return 1.0 - lost / ledger.whole_s
