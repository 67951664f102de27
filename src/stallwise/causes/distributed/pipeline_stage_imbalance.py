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

import math
from dataclasses import replace

from stallwise.causes.distributed._replayed_job import of_the_job
from stallwise.doctor.findings.clue import above, over, yes
from stallwise.doctor.findings.finding import Finding, Fix, Gain, Reason
from stallwise.doctor.findings.rule import rule
from stallwise.evidence.capture import RANK_TRACES, STEP_SHAPE, Capture
from stallwise.evidence.catalog import distributed as q
from stallwise.evidence.catalog import expected, stated
from stallwise.evidence.catalog import workers as w
from stallwise.evidence.evidence import Evidence
from stallwise.evidence.ledger import Category

UNEVEN = 1.05  # slowest over mean; layers come whole, so a few percent are unavoidable
CLEAR = 1.15
NOTICEABLE = 0.02  # of a step, by replay
BEYOND = 1.25  # times the idle share of plain 1F1B: rounding of the formula and warm-up steps explain less
LONG_HANDOFFS = 0.15  # of the step in sends and receives: they may be the whole excess
STATED, STATED_SURE = 0.65, 0.75  # the split is likeliest; surer where stragglers and links are excluded


@rule()
def pipeline_stage_imbalance(evidence: Evidence) -> Finding | None:
    """From the times of the stages where there are any, else from an idle share that no schedule of equal stages has."""
    return _in_times(evidence) or _in_idle_share(evidence)


def _in_idle_share(evidence: Evidence) -> Finding | None:
    """Stages, micro-batches and the measured idle share are stated: what the schedule does not explain, the split does.

    Hand-offs and stragglers are the other two that can; who has measured either, or names a rank, is not answered here.
    """
    measured, plain = evidence.get(expected.BUBBLE_OF_STEP), evidence.get(expected.BUBBLE_1F1B)
    if measured is None or plain is None or measured.number < BEYOND * plain.number:
        return None
    if evidence.value(stated.STRAGGLERS, 0.0) or evidence.value(stated.P2P_SHARE, 0.0) > LONG_HANDOFFS:
        return None
    excluded = [evidence.get(flag) for flag in (stated.STRAGGLERS, stated.FABRIC_HEALTHY)]
    found = advise(evidence)
    because = found.because
    if all(excluded):
        because = (*because, Reason.of("no rank lags and the fabric is healthy, as stated: what is left is the split", *filter(None, excluded)))  # fmt: skip
    return replace(found, confidence=STATED_SURE if all(excluded) else STATED, because=because)


def _in_times(evidence: Evidence) -> Finding | None:
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
    step, cost, balanced = evidence.get(q.JOB_STEP), evidence.get(w.STAGE_COST), evidence.get(w.STAGE_BALANCED)
    gain = None
    if step and cost and balanced:
        if cost.number < NOTICEABLE * step.number:
            return None
        low, high = sorted((balanced.number, cost.number))
        gain = Gain(low, high, "replayed: equal stages with the same work, to this stage like the others")
    elif step and worst < step.number:
        gain = Gain(0.5 * (worst - mean), worst - mean, "slowest less mean stage")
    faster = f"{worst * 1e3:.2f} -> {mean * 1e3:.2f} ms a pass: up to {ratio.number:.2f}x in the steady state"
    because = [
        Reason.of(f"stage {at} ({place}) takes {ratio} the mean of {stages} stages", ratio, stages),
        Reason.of("stage times: " + ", ".join(str(f) for f in times[:16]), *times[:1]),
    ]
    if cost and balanced:
        how = f" ({cost.note})" if cost.note else ""
        text = f"beyond the other stages it costs {cost} a step{how}; moving work until all are equal saves {balanced}"
        because += [Reason.of(text, cost, balanced), *of_the_job(evidence)]
    idle, ideal = evidence.get(q.PIPELINE_IDLE), evidence.get(q.BUBBLE_IDEAL)
    if idle and ideal:
        because.append(Reason.of(f"stages idle {idle}; equal stages would idle {ideal}", idle, ideal))
    usual = " The output head and the loss live there." if place == "the last" else ""
    usual = usual or (" The embedding lives there." if place == "the first" else "")
    return Finding(
        headline=f"Pipeline stage {at} is {ratio.number - 1:.0%} slower than the mean: all stages wait for it.",
        confidence=0.75 + 0.2 * min((ratio.number - 1) / (CLEAR - 1), 1.0),
        because=tuple(because),
        category=None if cost else Category.BUBBLE,
        gain=gain,
        fixes=(
            Fix(_move(evidence, at, 1 - 1 / ratio.number), gain, worth=faster,
                cost="a restart with a resharded checkpoint", risk="memory of the other stages grows"),
            Fix("Split the output head across stages or ranks (vocabulary parallelism)", gain, worth=faster, cost="framework support")
            if place == "the last" else
            Fix("Count embedding and head as layers when splitting", gain, worth=faster),
        ),
        not_here=(Reason("the schedule's own bubble: it is the same for all stages"),),
        avoid="More micro-batches: the excess is paid once for each of them.",
        next=(RANK_TRACES,),
        explains=("pipeline-bubble", "exposed-communication") if cost else ("pipeline-bubble", "straggler-rank", "exposed-communication"),  # a receive that waits moves no bytes
        summary=f"A pipeline runs at the pace of its slowest stage.{usual}",
    )  # fmt: skip


# Unequal pipeline stages, while only suspected.
STAGES = Capture(
    "forward and backward time of one micro-batch on every stage",
    "stallwise record --light -- python train.py   (on every pipeline rank)",
    "one short run",
)

CLUES = (
    over(expected.BUBBLE_OF_STEP, expected.BUBBLE_SCHEDULE, 1.25, "fair, needed",
         "more idle than the schedule has", "the idle time is the schedule's own"),
    yes(stated.STRAGGLERS, "against", "some rank lags", "no rank lags, so the split itself is uneven"),
    yes(stated.FABRIC_HEALTHY, "hint when seen", "the fabric is healthy"),
    above(expected.STAGE_RATIO, 1.12, "strong, needed", "stages differ in compute time", "stages take equally long"),
    above(stated.P2P_SHARE, 0.15, "against", "hand-offs are long", "hand-offs are short"),
)  # fmt: skip


def advise(evidence: Evidence) -> Finding:
    """Balance first, then interleaving, then more micro-batches, then a zero-bubble schedule."""
    bubble, plain, ideal, needed, seen = (evidence.get(q) for q in (
        stated.BUBBLE, expected.BUBBLE_1F1B, expected.BUBBLE_SCHEDULE, expected.STAGE_RATIO_NEEDED, expected.STAGE_RATIO))  # fmt: skip
    doubled, head = evidence.get(expected.BUBBLE_DOUBLED), evidence.get(expected.HEAD_LAYERS)
    because = []
    formula, of_step = evidence.get(expected.BUBBLE_FORMULA), evidence.get(expected.BUBBLE_OF_STEP)
    hoped = evidence.get(stated.BUBBLE_EXPECTED)
    if bubble and of_step and plain and ideal and formula:
        interleaved = f", interleaved ({ideal.note}) {ideal}" if ideal.number != plain.number else ""
        because.append(Reason.of(
            f"measured {bubble} {of_step.note}, {of_step} of the step; equal stages idle (p-1)/m = {formula.note} = {hoped or formula} of useful time, "
            f"{plain} of the step in plain 1F1B{interleaved}: {100 * (of_step.number - ideal.number):.0f} points have another cause"
            + (f" ({100 * (bubble.number - formula.number):.1f} points over the formula)" if bubble.number > of_step.number else ""), bubble))  # fmt: skip
    if needed:
        because.append(
            Reason(
                f"a slowest stage of {needed} the mean would explain all of it{needed.note}{f'; measured: {seen}' if seen else ''}"
            )
        )
    if idle := evidence.all(expected.STAGE_IDLE):
        because.append(
            Reason("idle by stage: " + ", ".join(f"{f.scope.layer}: {f}" for f in idle) + f"; the mean is {of_step}")
        )
    again = evidence.get(expected.RECOMPUTE_STAGE_RATIO)
    if needed and again:
        covers = "enough" if again.number >= needed.number else "not all of it"
        because.append(Reason(
            f"recompute on one stage and not on the others makes it {again} the mean: {covers}; ask which stages recompute"))  # fmt: skip
    if head:
        because.append(Reason(f"the output head alone weighs as much as {head.number:.1f} layers, on one stage"))
    balanced = (
        f"idle {of_step} -> {ideal} of the step: {(1 - ideal.number) / (1 - of_step.number):.2f}x throughput"
        if of_step and ideal
        else "the excess over the schedule's own bubble"
    )
    chunked = (
        f"of equal stages: one chunk {plain}, {ideal.note} {ideal}, twice as many {doubled}, before hand-offs"
        if plain and ideal and doubled
        else "between plain 1F1B and the ideal of v chunks"
    )
    more = f"ideal bubble {ideal} -> {doubled}" if doubled and ideal else "a smaller ideal bubble"
    return Finding(
        headline="Pipeline stages are unequal: the fast ones wait for the slowest every micro-batch.",
        confidence=0.0,
        because=tuple(because),
        summary="The bubble formula assumes equal stages and free hand-offs; embedding, head and loss break the first.",
        fixes=(
            Fix("Rebalance the split: fewer layers on the first and last stage, and the same recompute on all", worth=balanced, cost="a restart, resharded checkpoint",
                risk="memory of the middle stages grows"),
            Fix("Choose the number of virtual stages by simulation, not by habit", worth=chunked, cost="more hand-offs",
                risk="p2p latency eats the gain for small micro-batches"),
            Fix("More micro-batches a step", worth=more, cost="activation memory or a larger global batch", risk="does nothing for imbalance: it scales with m"),
            Fix("A zero-bubble schedule (ZB-H1, ZB-H2)", worth="removes most of the ideal bubble that is left", cost="framework support, for H2 memory",
                risk="sensitive to unequal stages too"),
        ),
        avoid="Taking the bubble formula at face value: it holds for equal stages and free hand-offs, which is what is in doubt here.",
        next=(STAGES, RANK_TRACES, STEP_SHAPE),
    )  # fmt: skip


def _move(evidence: Evidence, stage: int, share: float) -> str:
    """How much of the stage: in layers where somebody says how many it has."""
    layers = next((f.number for f in evidence.all(w.STAGE_LAYERS) if f.scope.stage == stage), math.nan)
    known = math.isfinite(layers) and math.isfinite(share)
    some = f"{max(round(share * layers), 1)} of its {layers:.0f} layers" if known else f"{share:.0%} of its work"
    return f"Move {some} from stage {stage} to the others, by measured time"
