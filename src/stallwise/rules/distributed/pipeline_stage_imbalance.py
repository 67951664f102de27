"""One pipeline stage takes longer than the others, so all others wait for it in every micro-batch.

## What it means
Stages differ in compute: the first holds the embedding, the last the output head and the loss, or layers were split by
count instead of by time.

## Why it costs
In the steady state a pipeline runs at the pace of its slowest stage. The others idle for the difference, once for each
micro-batch; more micro-batches do not help.

## What else looks so
The bubble of the schedule is the same on all stages and shrinks with more micro-batches. A rank that is slow for
other reasons (clocks, input) is a straggler: the same layers are quick elsewhere. Slow hand-offs cost all stages alike.

## Fix
Move layers away from the slowest stage by measured time, split the head or the loss, give embedding and head their own
share when counting layers.

## How the gain is found
Slowest stage less the mean, once for each micro-batch.
"""

from __future__ import annotations

from stallwise.evidence.capture import RANK_TRACES
from stallwise.evidence.catalog import distributed as q
from stallwise.evidence.evidence import Evidence
from stallwise.evidence.ledger import Account
from stallwise.findings.finding import Finding, Fix, Gain, Reason
from stallwise.findings.rule import rule

UNEVEN = 1.05  # slowest over mean; layers come whole, so a few percent are unavoidable
CLEAR = 1.15


@rule(q.STAGE_RATIO, q.PIPELINE_STAGES)
def pipeline_stage_imbalance(evidence: Evidence) -> Finding | None:
    """The slowest stage stands out from the mean."""
    ratio, stages = evidence.get(q.STAGE_RATIO), evidence.get(q.PIPELINE_STAGES)
    slowest = evidence.get(q.SLOWEST_STAGE)
    if not (ratio and stages and slowest) or ratio.number < UNEVEN:
        return None
    times = sorted(evidence.all(q.STAGE_COMPUTE), key=lambda f: f.scope.stage or 0)
    worst = max((f.number for f in times), default=0.0)
    mean = worst / ratio.number
    at = int(slowest.number)
    place = "the first" if at == 0 else "the last" if at == int(stages.number) - 1 else f"stage {at}"
    step = evidence.get(q.JOB_STEP)
    gain = Gain(0.5 * (worst - mean), worst - mean, "slowest less mean stage") if step and worst < step.number else None
    faster = f"{worst * 1e3:.2f} -> {mean * 1e3:.2f} ms a pass: up to {ratio.number:.2f}x in the steady state"
    because = [
        Reason.of(f"stage {at} ({place}) takes {ratio} the mean of {stages} stages", ratio, stages),
        Reason.of("stage times: " + ", ".join(str(f) for f in times[:16]), *times[:1]),
    ]
    idle, ideal = evidence.get(q.PIPELINE_IDLE), evidence.get(q.BUBBLE_IDEAL)
    if idle and ideal:
        because.append(Reason.of(f"stages idle {idle}; equal stages would idle {ideal}", idle, ideal))
    usual = " The output head and the loss live there." if place == "the last" else ""
    usual = usual or (" The embedding lives there." if place == "the first" else "")
    return Finding(
        headline=f"Pipeline stage {at} is {ratio.number - 1:.0%} slower than the mean: all stages wait for it.",
        confidence=0.75 + 0.2 * min((ratio.number - 1) / (CLEAR - 1), 1.0),
        because=tuple(because),
        account=Account.BUBBLE,
        gain=gain,
        fixes=(
            Fix(f"Move layers from stage {at} to the others, by measured time", gain, worth=faster,
                cost="a restart with a resharded checkpoint", risk="memory of the other stages grows"),
            Fix("Split the output head across stages or ranks (vocabulary parallelism)", gain, worth=faster, cost="framework support")
            if place == "the last" else
            Fix("Count embedding and head as layers when splitting", gain, worth=faster),
        ),
        not_here=(Reason("the schedule's own bubble: it is the same for all stages"),),
        avoid="More micro-batches: the excess is paid once for each of them.",
        next=(RANK_TRACES,),
        explains=("pipeline-bubble", "straggler-rank", "exposed-communication"),  # a receive that waits moves no bytes
        summary=f"A pipeline runs at the pace of its slowest stage.{usual}",
    )  # fmt: skip
