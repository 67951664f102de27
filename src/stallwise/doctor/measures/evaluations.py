"""Evaluations that a log times as a whole, against the training between them: what part of the wall time they take."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from stallwise.evidence.catalog import change, run, stages
from stallwise.evidence.evidence import Evidence, Item
from stallwise.evidence.fact import Fact

ORDER = -3
SEVERAL = 2
WHOLE = 10.0  # steps: what takes longer is an evaluation of a whole set, not the part of a step


def from_evidence(evidence: Evidence) -> Iterator[Item]:
    """One share, where the log tells how many steps it saw."""
    evaluation, step = evidence.get(stages.EVALUATION, run=None), evidence.get(run.STEP_TIME, run=None)
    step_times = max(evidence.series(run.STEP_TIME), key=lambda s: len(s.x), default=None)
    if evaluation is None or step is None or step_times is None or step_times.over != "step" or len(step_times.x) < 2:
        return
    if not evaluation.number > WHOLE * step.number > 0:
        return
    every = float(np.median(np.diff(step_times.x)))  # the first line stands for the steps before it
    if evaluation.samples < SEVERAL and step_times.x[0] > SEVERAL * every:
        return  # one evaluation at the end of a piece of a log: how long it was trained before is not in it
    trained_s = (float(step_times.x[-1] - step_times.x[0]) + every) * step.number
    evaluated_s = evaluation.number * max(evaluation.samples, 1)
    share = evaluated_s / (evaluated_s + trained_s)
    yield Fact(change.EVALUATION_SHARE, share, evaluation.source, samples=max(evaluation.samples, 1))
