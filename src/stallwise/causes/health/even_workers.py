"""Workers of a job are in line when, replayed, the step is nearly that of equal workers, and nothing out of line costs a noticeable part.

Refuted by: a worker, stage, microbatch, link or pause that costs 2% of the step or more, or a replay that misses the measured step.
"""

from __future__ import annotations

from stallwise.doctor.findings.finding import Reason
from stallwise.doctor.findings.proof import Proof
from stallwise.evidence.capture import RANK_TRACES
from stallwise.evidence.catalog import distributed as d
from stallwise.evidence.catalog import workers as q
from stallwise.evidence.evidence import Evidence

NOTICEABLE = 0.02  # of a step; run-to-run noise of healthy jobs is 1 to 2%
FAITHFUL = 0.02  # of the measured step


def even_workers(evidence: Evidence) -> Proof | None:
    """How far the step is from that of equal workers."""
    step, ideal, slowdown = (evidence.get(x) for x in (d.JOB_STEP, q.IDEAL_STEP, q.SLOWDOWN))
    count, error = evidence.get(q.WORKERS), evidence.get(q.REPLAY_ERROR)
    if not (step and ideal and slowdown and count):
        return None
    says = f"{count} workers, {step} a step, {ideal} if all took the mean ({slowdown.number:.2f}x)"
    costs = (d.STRAGGLER_COST, q.STAGE_COST, q.SEQUENCE_COST, q.LINK_COST, q.PAUSE_COST)
    lacks = ""
    if error and abs(error.number) > FAITHFUL:
        lacks = f"replayed unchanged, the step differs from the measured one by {abs(error.number):.0%}."
    elif any(evidence.value(x, 0.0) >= NOTICEABLE * step.number for x in costs):
        lacks = "some of them cost a noticeable part of the step."
    return Proof(
        of="workers of the job",
        says=f"{says}; whether each is as fast as it should be is not in this timeline",
        because=(Reason.of(says, step, ideal, slowdown),),
        confidence=0.8,
        lacks=lacks,
        covers_run=False,
        next=(RANK_TRACES,) if lacks else (),
    )
