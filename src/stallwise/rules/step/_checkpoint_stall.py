"""Saving that blocks the loop, while only suspected."""

from __future__ import annotations

from stallwise.evidence.catalog import change, run, stages, stated
from stallwise.evidence.evidence import Evidence
from stallwise.evidence.ledger import Account
from stallwise.findings.clue import Clue, above, yes
from stallwise.findings.owned import Owned
from stallwise.findings.symptom import Symptom

EXPLAINS = {
    Symptom.PERIODIC_STALL: "often",
    Symptom.SUDDEN_SLOWDOWN: "at times",
    Symptom.HANG: "at times",
    Symptom.SLOW_STEP: "seldom",
    Symptom.LOW_GPU_UTILISATION: "seldom",
}


def _at_saves(evidence: Evidence) -> bool | None:
    period, every = evidence.value(change.STALL_PERIOD), evidence.value(run.SAVE_EVERY)
    return abs(period - every) < 0.1 * every


def _stated_at_saves(evidence: Evidence) -> bool | None:
    return abs(evidence.value(stated.PERIOD_STEPS) - evidence.value(run.SAVE_EVERY)) < 0.1 * evidence.value(
        run.SAVE_EVERY
    )


def _saves_logged(evidence: Evidence) -> bool | None:
    return bool(evidence.all(run.SAVES) or evidence.all(run.SAVE_EVERY))


OWNS = Owned(Account.CHECKPOINT, (stages.CHECKPOINT,), right=1, of=1)

CLUES = (
    Clue((change.STALL_PERIOD,), _saves_logged, "fair", "the log tells of saves", "the log tells of no save"),
    yes(run.DIED_IN_SAVE, "decisive when seen", "the log ends in an error right after a save began"),
    above(run.SAVE_TIME, 60.0, "fair when seen", "one save takes minutes", "a save is short"),
    Clue((change.STALL_PERIOD, run.SAVE_EVERY), _at_saves, "decisive, needed", "slow steps come with the saves", "slow steps do not come with the saves"),
    above(change.STALL_AT_SAVE, 0.6, "decisive, needed", "slow steps come right after a save", "slow steps do not come with the saves"),
    above(change.STALL_AT_EVAL, 0.6, "against", "slow steps come with evaluations"),
    Clue((stated.PERIOD_STEPS, run.SAVE_EVERY), _stated_at_saves, "decisive, needed", "the period is that of the saves", "the period is not that of the saves"),
    yes(stated.CHECKPOINTING, "strong, needed", "a checkpoint was being written", "no checkpoint was being written"),
    above(change.STALL_AT_GC, 0.5, "against", "slow steps coincide with garbage collection"),
    above(change.STALL_IN_DATA, 0.5, "against", "slow steps wait for data"),
    yes(run.GC_AUTOMATIC, "against", "collection is automatic"),
)  # fmt: skip
