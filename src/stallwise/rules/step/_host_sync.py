"""Synchronisation inside the step, while only suspected."""

from __future__ import annotations

from stallwise.evidence.catalog import run
from stallwise.evidence.evidence import Evidence
from stallwise.evidence.ledger import Account
from stallwise.findings.clue import Clue, above, over
from stallwise.findings.owned import Owned
from stallwise.findings.symptom import Symptom

EXPLAINS = {Symptom.SLOW_STEP: "often", Symptom.LOW_GPU_UTILISATION: "at times"}


def _called_by_host(evidence: Evidence) -> bool | None:
    caller = evidence.text(run.SYNC_CALLER)
    return any(w in caller for w in ("item", "scalar", "nonzero", "Synchronize", "cpu"))


OWNS = Owned(Account.HOST_WAIT, (run.SYNC_TIME,), right=2, of=2, shares=(run.SYNC_SHARE,), whole_account=False)

CLUES = (
    above(run.SYNC_SHARE, 0.05, "strong, needed", "a good part of host time is spent in synchronisation", "synchronisation takes little time"),
    over(run.SYNC_TIME, run.STEP_TIME, 0.08, "fair", "each step blocks in a synchronisation", "steps hardly block"),
    Clue((run.SYNC_CALLER,), _called_by_host, "fair when seen", "the caller reads a value back every step"),
    above(run.SYNC_REMOVED_GAIN, 0.08, "decisive, needed", "the same run without the synchronisation is faster", "removing the synchronisation wins next to nothing"),
    above(run.DEVICE_SHARE, 0.92, "forbids", "the device is busy all the time: the host only waits for queued work", "the device has idle time"),
    above(run.HOST_UNEXPLAINED_SHARE, 0.5, "against", "most of the time is elsewhere"),
)  # fmt: skip
