"""Copies that only change a tensor's layout take a large part of the device's time.

## What it means
Transposes made contiguous, concatenations, reshapes of non-contiguous views and conversions between channel orders
each read and write a whole tensor without computing anything.

## Why it costs
They run at memory speed and every byte is moved twice for nothing. Convolution libraries that want another channel
order insert them around each call.

## What else looks so
Casts between types are part of mixed precision; copies of attention scores go when attention is fused.

## Fix
Keep one layout through the model: `channels_last` for convolutions, projections that write their output in the order
the next operator wants, views instead of `contiguous()`.

## How the gain is found
The time of layout kernels outside attention scores and the optimizer; the low end takes half of it, since some
layouts must change somewhere.
"""

from __future__ import annotations

from stallwise.doctor.findings.finding import Finding, Fix
from stallwise.doctor.findings.rule import rule
from stallwise.doctor.findings.step_facts import StepFacts, ms, percent
from stallwise.evidence.catalog import gains
from stallwise.evidence.catalog import step as s
from stallwise.evidence.evidence import Evidence
from stallwise.evidence.ledger import Category

NOTABLE = 0.12  # of the busy time: cutting heads apart and joining them again took an eager encoder 10% on an H200


@rule(s.LAYOUT_TIME, s.BUSY_TIME, s.STEP_TIME)
def layout_copies(evidence: Evidence) -> Finding | None:
    """Looks for layout kernels that dominate."""
    facts = StepFacts(evidence)
    copies, busy = facts.seconds(s.LAYOUT_TIME), facts.seconds(s.BUSY_TIME)
    if busy <= 0 or copies < NOTABLE * busy:
        return None
    gain = facts.less_work(
        gains.CHANNELS_LAST, 0.5 * copies, 0.95 * copies, "layout kernels; some layouts must change somewhere"
    )
    convolutions = facts.seconds(s.CONV_TIME) > 0
    return Finding(
        headline=f"Layout copies take {ms(copies)} of every {ms(facts.step_s)}.",
        confidence=0.85,
        category=Category.COMPUTE,
        gain=gain,
        because=(
            facts.because(
                f"{percent(copies / busy)} of the device's busy time changes layouts and computes nothing",
                s.LAYOUT_TIME,
            ),
        ),
        fixes=(
            Fix("model and inputs in channels_last", gain, cost="two lines")
            if convolutions
            else Fix("drop contiguous() and clone(); let the next operator read the view", gain, cost="model changes"),
            Fix("torch.compile fuses many of them away", gain, cost="compile time"),
        ),
        avoid="Do not tune the products around them: their time is not in question.",
        explains=("elementwise-unfused",) if copies > 0.5 * facts.seconds(s.POINTWISE_TIME) else (),
        optional=facts.is_optional(gain),
    )
