"""Saving that blocks the loop, while only suspected."""

from __future__ import annotations

from stallwise.evidence.catalog import change, run, stages, stated
from stallwise.evidence.evidence import Evidence
from stallwise.evidence.ledger import Account
from stallwise.findings.clue import AGAINST, DECISIVE, EXCLUDES, FAIR, HINT, STRONG, Clue, above, yes
from stallwise.findings.owned import Owned
from stallwise.findings.symptom import Symptom

EXPLAINS = (Symptom.PERIODIC_STALL, Symptom.SUDDEN_SLOWDOWN, Symptom.HANG, Symptom.SLOW_STEP)


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
    Clue((change.STALL_PERIOD,), _saves_logged, HINT, "the log tells of saves", "the log tells of no save"),
    yes(run.DIED_IN_SAVE, DECISIVE, "the log ends in an error right after a save began"),
    above(run.SAVE_TIME, 60.0, HINT, "one save takes minutes", "a save is short"),
    Clue((change.STALL_PERIOD, run.SAVE_EVERY), _at_saves, STRONG, "slow steps come with the saves", "slow steps do not come with the saves"),
    above(change.STALL_AT_SAVE, 0.6, DECISIVE, "slow steps come right after a save", "slow steps do not come with the saves"),
    above(change.STALL_AT_EVAL, 0.6, EXCLUDES, "slow steps come with evaluations"),
    Clue((stated.PERIOD_STEPS, run.SAVE_EVERY), _stated_at_saves, STRONG, "the period is that of the saves", "the period is not that of the saves"),
    yes(stated.CHECKPOINTING, FAIR, "a checkpoint was being written", "no checkpoint was being written"),
    above(change.STALL_AT_GC, 0.5, EXCLUDES, "slow steps coincide with garbage collection"),
    above(change.STALL_IN_DATA, 0.5, EXCLUDES, "slow steps wait for data"),
    yes(run.GC_AUTOMATIC, AGAINST, "collection is automatic"),
)  # fmt: skip
