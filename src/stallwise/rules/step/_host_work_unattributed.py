"""Host time that nothing accounts for, while only suspected."""

from __future__ import annotations

from stallwise.evidence.catalog import run
from stallwise.evidence.evidence import Evidence
from stallwise.findings.clue import Clue, above
from stallwise.findings.symptom import Symptom

EXPLAINS = {Symptom.LOW_GPU_UTILISATION: "often", Symptom.SLOW_STEP: "at times", Symptom.PERIODIC_STALL: "at times"}


def _one_core(evidence: Evidence) -> bool | None:
    busy = evidence.value(run.HOST_BUSY_CORES)
    return 0.8 < busy < 1.3 if busy == busy else None


CLUES = (
    above(run.HOST_UNEXPLAINED_SHARE, 0.4, "decisive, needed", "most wall time is in no timed action and not on the device", "the timed actions cover the run"),
    above(run.DATA_SHARE, 0.3, "against", "the loader explains the wait"),
    above(run.HOST_HOT_SHARE, 0.3, "fair when seen", "one function takes much of the host's own time"),
    Clue((run.HOST_BUSY_CORES,), _one_core, "hint when seen", "one core is busy all the time"),
)  # fmt: skip
