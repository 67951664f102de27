"""Recomputation that was switched on, while only suspected."""

from __future__ import annotations

from stallwise.evidence.catalog import stated
from stallwise.findings.clue import DECISIVE, HINT, says_one_of, yes
from stallwise.findings.symptom import Symptom

EXPLAINS = (Symptom.SUDDEN_SLOWDOWN, Symptom.SLOW_STEP)  # a choice of the user's, so the change itself tells
CLUES = (
    says_one_of(
        stated.CHANGED,
        ("checkpointing", "recompute", "rematerial"),
        DECISIVE,
        "recomputation was switched on",
        "recomputation did not change",
    ),
    yes(
        stated.AFTER_MEMORY_SAVING,
        HINT,
        "it began after a change that saves memory",
        "nothing was changed to save memory",
    ),
)
