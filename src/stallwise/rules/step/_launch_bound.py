"""Too many launches, while only suspected."""

from __future__ import annotations

from stallwise.evidence.catalog import run
from stallwise.findings.clue import AGAINST, DECISIVE, above, below, over
from stallwise.findings.symptom import Symptom

EXPLAINS = (Symptom.LOW_GPU_UTILISATION, Symptom.SLOW_STEP, Symptom.SERVING_SLOW, Symptom.BUSY_BUT_SLOW)
CLUES = (
    over(run.LAUNCH_COST, run.REPLAY_COST, 2.0, DECISIVE,
         "launching a kernel costs several times what replaying it in a graph does", "a graph would replay no faster"),
    above(run.DATA_SHARE, 0.3, AGAINST, "time goes to loading"),
    below(run.LOADER_WORKERS, 1, AGAINST, "the loader has no worker"),
)  # fmt: skip
