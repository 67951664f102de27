"""The number of chunks each pipeline rank interleaves does not fit the micro-batches and the cost of hand-offs.

## What it means
Interleaving v chunks divides the bubble by v and multiplies the hand-offs by v. The best v balances the two; the run
uses another.

## Why it costs
Too few chunks leave the bubble; too many pay for hand-offs that save nothing.

## What else looks so
Unequal stages idle whatever v is. With many micro-batches the bubble is small already and v hardly matters.

## Fix
Take the v at which bubble and hand-offs together are smallest, if the layers divide by it.

## How the gain is found
bubble (p-1)/v passes plus 2 m v hand-offs, at the run's v and at the best.
"""

from __future__ import annotations

from math import sqrt

from stallwise.doctor.findings.finding import Finding, Fix, Gain, Reason
from stallwise.doctor.findings.rule import rule
from stallwise.evidence.capture import RANK_TRACES, STEP_SHAPE
from stallwise.evidence.catalog import distributed as q
from stallwise.evidence.catalog import stated
from stallwise.evidence.evidence import Evidence
from stallwise.evidence.ledger import Category

WORTH_IT = 0.03  # of the step
EQUAL_STAGES = 1.1  # longest over shortest, as for the bubble
MOST_CHUNKS = 8
CLUES = ()


@rule(q.P2P_TIME, q.P2P_COUNT, q.PIPELINE_STAGES, q.MICROBATCHES_SEEN)
def virtual_stages_suboptimal(evidence: Evidence) -> Finding | None:
    """Another v would save a noticeable part of the step."""
    stages, many = evidence.value(q.PIPELINE_STAGES), evidence.value(q.MICROBATCHES_SEEN)
    count, time = evidence.value(q.P2P_COUNT), evidence.value(q.P2P_TIME)
    step, now = evidence.get(q.JOB_STEP), evidence.value(stated.VIRTUAL_STAGES, 1.0)
    compute = [f.number for f in evidence.all(q.STAGE_COMPUTE)]
    if step is None or not compute or stages < 1 or many < 1 or count <= 0 or now < 1:
        return None
    hand_off_s = time / count
    pass_s = sum(compute) / len(compute) / many
    best = min(range(1, MOST_CHUNKS + 1), key=lambda v: _overhead(v, stages, many, pass_s, hand_off_s))
    saved = _overhead(int(now), stages, many, pass_s, hand_off_s) - _overhead(best, stages, many, pass_s, hand_off_s)
    if best == now or saved < WORTH_IT * step.number:
        return None
    ideal = sqrt((stages - 1) * pass_s / max(2 * many * hand_off_s, 1e-12))
    gain = Gain(0.5 * saved, saved, "bubble plus hand-offs at both values")
    return Finding(
        headline=f"{best} chunks a pipeline rank would suit this job better than {now:.0f}.",
        confidence=0.6,
        because=(
            Reason(
                f"one pass takes {pass_s * 1e3:.2f} ms and one hand-off {hand_off_s * 1e3:.3f} ms: the two balance at v = {ideal:.1f}"
            ),
            Reason(f"{stages:.0f} stages, {many:.0f} micro-batches"),
        ),
        category=Category.BUBBLE,
        gain=gain,
        fixes=(Fix(f"Interleave {best} chunks a rank", gain, cost="a restart", risk="layers must divide evenly"),),
        avoid="The largest v that the layers allow: hand-offs grow with it.",
        next=(RANK_TRACES, STEP_SHAPE),
        # Who drains last is waited for at the step's end: of equal stages that is the schedule, and nobody is slow.
        explains=("exposed-communication", "pipeline-bubble")
        + (("straggler-rank",) if max(compute) <= EQUAL_STAGES * min(compute) else ()),
    )


def _overhead(v: int, stages: float, many: float, pass_s: float, hand_off_s: float) -> float:
    return (stages - 1) * pass_s / v + 2 * many * v * hand_off_s
