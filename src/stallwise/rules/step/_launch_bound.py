"""Too many launches, while only suspected."""

from __future__ import annotations

from stallwise.evidence.catalog import run
from stallwise.findings.clue import above, below, over
from stallwise.findings.symptom import Symptom

EXPLAINS = {
    Symptom.LOW_GPU_UTILISATION: "often",
    Symptom.SLOW_STEP: "at times",
    Symptom.SERVING_SLOW: "at times",
    Symptom.BUSY_BUT_SLOW: "at times",
}
CLUES = (
    over(run.LAUNCH_COST, run.REPLAY_COST, 2.0, "decisive, needed",
         "launching a kernel costs several times what replaying it in a graph does", "a graph would replay no faster"),
    above(run.DATA_SHARE, 0.3, "against", "time goes to loading"),
    below(run.LOADER_WORKERS, 1, "against", "the loader has no worker"),
)  # fmt: skip
