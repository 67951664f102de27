"""Input that is late in bursts, while only suspected."""

from __future__ import annotations

from stallwise.evidence.catalog import change, run, stated
from stallwise.evidence.evidence import Evidence
from stallwise.evidence.ledger import Account
from stallwise.findings.clue import Clue, above, yes
from stallwise.findings.owned import Owned
from stallwise.findings.symptom import Symptom

REGULAR = 0.6  # of the gaps between slow steps are alike
MOST_WORKERS = 64  # a rank has hardly more
EXPLAINS = {
    Symptom.PERIODIC_STALL: "mostly",
    Symptom.LOW_GPU_UTILISATION: "at times",
    Symptom.SLOW_STEP: "at times",
    Symptom.SUDDEN_SLOWDOWN: "at times",
    Symptom.HANG: "at times",
}

OWNS = Owned(Account.INPUT_WAIT, (), right=0, of=0, shares=(change.LATE_BATCH_SHARE,), whole_account=False)


def _remote_and_idle(evidence: Evidence) -> bool | None:
    workers = evidence.value(run.LOADER_WORKERS)
    return evidence.value(run.NETWORK_STORAGE, 0.0) > 0 and (workers != workers or workers > 0)


def _long_and_regular(evidence: Evidence) -> bool | None:
    """Workers deliver by turns, so that what comes back with a loader comes back after as many steps as there are workers."""
    workers = evidence.value(run.LOADER_WORKERS)
    longest = workers if workers > 0 else MOST_WORKERS
    return evidence.value(change.STALL_REGULARITY) > REGULAR and evidence.value(change.STALL_PERIOD) > longest


CLUES = (
    above(change.STALL_IN_DATA, 0.5, "decisive, needed", "slow steps are slow because their batch is late", "the slow steps do not wait for data"),
    above(change.STALL_AT_SAVE, 0.6, "against", "slow steps come with the saves"),
    above(change.STALL_AT_EVAL, 0.6, "against", "slow steps come with evaluations"),
    above(change.STALL_AT_GC, 0.5, "against", "slow steps coincide with garbage collection"),
    above(run.GC_COLLECTIONS, 1, "against", "collections are logged"),
    yes(run.GC_AUTOMATIC, "against", "collection is automatic"),
    Clue((run.NETWORK_STORAGE,), _remote_and_idle, "strong when seen", "workers read from a network mount, which can stall all of them", "data is local"),
    Clue((change.STALL_PERIOD, change.STALL_REGULARITY), _long_and_regular, "against", "slow steps come back after more steps than a loader has workers", "slow steps come at random, or as often as workers take turns"),
    yes(stated.BURSTY, "fair", "slow steps come in bursts", "all steps are slow alike"),
)  # fmt: skip
