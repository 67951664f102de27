"""Unequal pipeline stages, while only suspected."""

from __future__ import annotations

from stallwise.evidence.capture import RANK_TRACES, STEP_SHAPE, Capture
from stallwise.evidence.catalog import expected, stated
from stallwise.evidence.evidence import Evidence
from stallwise.findings.clue import above, over, yes
from stallwise.findings.finding import Finding, Fix, Reason
from stallwise.findings.symptom import Symptom

EXPLAINS = {Symptom.PIPELINE_IDLE: "mostly"}
STAGES = Capture(
    "forward and backward time of one micro-batch on every stage",
    "stallwise record --light -- python train.py   (on every pipeline rank)",
    "one short run",
)

CLUES = (
    over(stated.BUBBLE, expected.BUBBLE_SCHEDULE, 1.25, "fair, needed",
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
    if bubble and plain and ideal:
        because.append(Reason(
            f"of the whole step plain 1F1B idles {plain}, interleaved ({ideal.note}) {ideal}; measured {bubble}: "
            f"{100 * (bubble.number - ideal.number):.0f} points have another cause"))  # fmt: skip
    if needed:
        because.append(
            Reason(
                f"a slowest stage of {needed} the mean would explain all of it{f'; measured: {seen}' if seen else ''}"
            )
        )
    if idle := evidence.all(expected.STAGE_IDLE):
        because.append(
            Reason("idle by stage: " + ", ".join(f"{f.scope.layer}: {f}" for f in idle) + f"; the mean is {bubble}")
        )
    again = evidence.get(expected.RECOMPUTE_STAGE_RATIO)
    if needed and again:
        covers = "enough" if again.number >= needed.number else "not all of it"
        because.append(Reason(
            f"recompute on one stage and not on the others makes it {again} the mean: {covers}; ask which stages recompute"))  # fmt: skip
    if head:
        because.append(Reason(f"the output head alone weighs as much as {head.number:.1f} layers, on one stage"))
    balanced = (
        f"idle {bubble} -> {ideal}: {(1 - ideal.number) / (1 - bubble.number):.2f}x throughput"
        if bubble and ideal
        else "the excess over the schedule's own bubble"
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
            Fix("Choose the number of virtual stages by simulation, not by habit", worth="between plain 1F1B and the ideal of v chunks", cost="more hand-offs",
                risk="p2p latency eats the gain for small micro-batches"),
            Fix("More micro-batches a step", worth=more, cost="activation memory or a larger global batch", risk="does nothing for imbalance: it scales with m"),
            Fix("A zero-bubble schedule (ZB-H1, ZB-H2)", worth="removes most of the ideal bubble that is left", cost="framework support, for H2 memory",
                risk="sensitive to unequal stages too"),
        ),
        avoid="Taking the bubble formula at face value: it holds for equal stages and free hand-offs, which is what is in doubt here.",
        next=(STAGES, RANK_TRACES, STEP_SHAPE),
    )  # fmt: skip
