"""A job of many workers, replayed: what the slow worker, stage, sequence, link or pause costs."""

from __future__ import annotations

from stallwise.evidence.capture import RANK_TRACES
from stallwise.evidence.quantity import Quantity
from stallwise.units import Unit

_S, _N, _X, _P, _T = Unit.SECOND, Unit.COUNT, Unit.RATIO, Unit.SHARE, Unit.TEXT


def _of_job(name: str, unit: Unit, meaning: str) -> Quantity:
    return Quantity(name, unit, meaning, RANK_TRACES)


WORKERS = _of_job("workers.count", _N, "workers of the job: pipeline stages times replicas")
IDEAL_STEP = _of_job("workers.ideal_step", _S, "the step if every operation took the mean of its kind")
SLOWDOWN = _of_job("workers.slowdown", _X, "the step over the ideal step")
SLOWEST_SHARE = _of_job(
    "workers.slowest_share", _P, "share of the lost time that the slowest 3% of workers explain (Mw)"
)
LAST_STAGE_SHARE = _of_job("workers.last_stage_share", _P, "share of the lost time that the last stage explains (Ms)")
REPLAY_ERROR = _of_job("workers.replay_error", _P, "the step replayed unchanged against the measured one")

WORKER_FACTOR = _of_job("workers.factor", _X, "compute of the slow worker over that of its peers")
STAGE_COST = _of_job("pipeline.stage_cost", _S, "what the slowest stage costs a step beyond the mean of the others")
STAGE_BALANCED = _of_job("pipeline.stage_balanced", _S, "what equal stages with the same work would save a step")
STAGE_LAYERS = _of_job("pipeline.stage_layers", _N, "layers of one stage")
SEQUENCE_COST = _of_job("sequence.cost", _S, "what a step would save if all its microbatches took their mean")
SEQUENCE_SPREAD = _of_job("sequence.spread", _P, "deviation of microbatch times, over their mean")
SEQUENCE_LONGEST = _of_job("sequence.longest", _X, "the longest hundredth of microbatches over the mean")
SEQUENCE_TOGETHER = _of_job("sequence.together", _P, "correlation of forward and backward times over microbatches")
LINK_COST = _of_job("pipeline.link_cost", _S, "what slow links between stages cost a step")
LINK_RATIO = _of_job("pipeline.link_ratio", _X, "transfers of the slow link over those of the others")
LINK = _of_job("pipeline.link", _T, "the stages it connects")
PAUSE_COST = _of_job("workers.pause_cost", _S, "what pauses of single workers out of step cost a step")
PAUSE_OFTEN = _of_job("workers.pause_often", _P, "share of workers and steps with such a pause")
PAUSE_ONE = _of_job("workers.pause_one", _P, "share of them that falls on one worker")
LEAST_WAIT = _of_job("workers.least_wait", _S, "wait of the rank that waits least for the others, a step")
OTHERS_WAIT = _of_job("workers.others_wait", _S, "wait of the other ranks, a step")
