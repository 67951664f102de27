"""Input that is late in bursts, while only suspected."""

from __future__ import annotations

from stallwise.evidence.catalog import change, run, stated
from stallwise.evidence.evidence import Evidence
from stallwise.findings.clue import AGAINST, DECISIVE, EXCLUDES, FAIR, HINT, Clue, above, yes
from stallwise.findings.symptom import Symptom

EXPLAINS = (
    Symptom.PERIODIC_STALL,
    Symptom.LOW_GPU_UTILISATION,
    Symptom.SLOW_STEP,
    Symptom.SUDDEN_SLOWDOWN,
    Symptom.HANG,
)


def _remote_and_idle(evidence: Evidence) -> bool | None:
    workers = evidence.value(run.LOADER_WORKERS)
    return evidence.value(run.NETWORK_STORAGE, 0.0) > 0 and (workers != workers or workers > 0)


CLUES = (
    above(change.STALL_IN_DATA, 0.5, DECISIVE, "slow steps are slow because their batch is late", "the slow steps do not wait for data"),
    above(change.STALL_AT_SAVE, 0.6, EXCLUDES, "slow steps come with the saves"),
    above(change.STALL_AT_EVAL, 0.6, EXCLUDES, "slow steps come with evaluations"),
    above(change.STALL_AT_GC, 0.5, EXCLUDES, "slow steps coincide with garbage collection"),
    above(run.GC_COLLECTIONS, 1, AGAINST, "collections are logged"),
    yes(run.GC_AUTOMATIC, AGAINST, "collection is automatic"),
    Clue((run.NETWORK_STORAGE,), _remote_and_idle, FAIR, "workers read from a network mount, which can stall all of them", "data is local"),
    yes(stated.BURSTY, HINT, "slow steps come in bursts", "all steps are slow alike"),
)  # fmt: skip
