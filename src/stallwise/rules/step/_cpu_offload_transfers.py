"""States or activations moved to the host, while only suspected."""

from __future__ import annotations

from stallwise.evidence.catalog import stated
from stallwise.findings.clue import says_one_of, yes
from stallwise.findings.symptom import Symptom

EXPLAINS = {Symptom.SUDDEN_SLOWDOWN: "seldom", Symptom.SLOW_STEP: "seldom"}
CLUES = (
    says_one_of(stated.CHANGED, ("offload",), "decisive", "offloading was switched on", "offloading did not change"),
    yes(
        stated.AFTER_MEMORY_SAVING,
        "hint",
        "it began after a change that saves memory",
        "nothing was changed to save memory",
    ),
)
