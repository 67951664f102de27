"""Values pass 65504, the largest number of fp16, and become inf.

## What it means
An activation, a score or a gradient grows beyond what fp16 can hold. The next subtraction or norm makes NaN of the inf, and
the loss is NaN from then on.

## Why it costs
Training stops to learn at once; the loss scaler halves without end because every step overflows.

## What else looks so
A model in bf16 has the range of fp32 and cannot overflow this way. A gradient that grows over many steps before the NaN is
an explosion. A single skipped step at the start is the scaler finding its level.

## Fix
bf16 where the hardware has it; models trained in bf16 (T5, many recent ones) never in fp16; keep the layer that overflows in
fp32; clamp before it; scale down residual branches.

## How the gain is found
The largest value of each layer against 65504.
"""

from __future__ import annotations

from stallwise.doctor.findings.clue import Clue
from stallwise.doctor.findings.finding import Finding, Fix, Reason
from stallwise.doctor.findings.rule import rule
from stallwise.evidence.capture import LAYER_STATS
from stallwise.evidence.catalog import numerics as n
from stallwise.evidence.catalog import run
from stallwise.evidence.evidence import Evidence

LARGEST = 65504.0
EXPLODED = 10.0  # times the usual gradient norm: then the gradient came first


def _overflows(evidence: Evidence) -> bool:
    largest = max(evidence.value(n.AMAX, 0.0), _largest_seen(evidence))
    return largest > LARGEST


def _largest_seen(evidence: Evidence) -> float:
    values = [
        float(v) for s in evidence.series(run.ACTIVATION_MAX) for v in s.values if v == v and abs(v) != float("inf")
    ]
    fact = evidence.get(run.ACTIVATION_MAX)
    return max([*values, fact.number if fact else 0.0], default=0.0)


# NaN in a half-precision run is mostly this.
CLUES = (
    Clue(
        (run.PRECISION,), lambda e: e.text(run.PRECISION) == "fp16", "fair, needed", "the run is in fp16", "not in fp16"
    ),
    Clue((n.AMAX,), _overflows, "strong", "a layer's values pass 65504"),
)


@rule()
def fp16_overflow(evidence: Evidence) -> Finding | None:
    """Judges ranges, the first bad layer and the loss together."""
    precision = evidence.text(run.PRECISION)
    if precision in ("bf16", "fp32", "tf32", "fp8"):
        return None
    scaled = bool(evidence.series(run.LOSS_SCALE))
    half = precision == "fp16" or scaled
    nan = evidence.value(run.NAN_STEPS, 0.0) > 0
    bad_layer, over = evidence.text(n.BAD_LAYER), _overflows(evidence)
    exploded = evidence.value(n.GRAD_RATIO, 1.0) >= EXPLODED and evidence.text(n.FIRST_MOVER) == "gradient"
    if not (nan or bad_layer) or (exploded and not over):
        return None
    confidence = 0.0
    if over and (half or nan):
        confidence = 0.94 if half else 0.85
    elif bad_layer and half:
        confidence = 0.92
    elif half and nan:
        confidence = 0.75
    elif bad_layer and nan:
        confidence = 0.6
    if not confidence:
        return None
    return Finding(
        headline=_headline(evidence, bad_layer, over),
        confidence=confidence,
        because=_because(evidence, half, bad_layer, over),
        fixes=(
            Fix("bf16 instead of fp16", worth="the range of fp32", cost="Ampere or later; 3 bits less of mantissa"),
            Fix(f"keep {bad_layer or 'the overflowing layer'} in fp32, or clamp its output", cost="a few lines"),
        ),
        avoid="Do not lower the learning rate or the loss scale: the forward pass itself overflows.",
        next=() if over or bad_layer else (LAYER_STATS,),
        explains=("loss-scale-collapse", "grad-explosion"),
        blocking=True,
    )


def _headline(evidence: Evidence, bad_layer: str, over: bool) -> str:
    where = bad_layer or (evidence.text(n.AMAX_LAYER) if over else "")
    return "fp16 overflows" + (f" in {where}" if where else ": the loss is NaN")


def _because(evidence: Evidence, half: bool, bad_layer: str, over: bool) -> tuple[Reason, ...]:
    found = []
    for quantity, text in (
        (run.PRECISION, "the run computes in {}"),
        (run.FIRST_NAN_STEP, "the loss is NaN from step {}"),
        (n.BAD_LAYER, "{} is the first layer with inf or NaN"),
    ):
        fact = evidence.get(quantity)
        if fact is not None:
            found.append(Reason.of(text.format(fact), fact))
    largest = max(evidence.value(n.AMAX, 0.0), _largest_seen(evidence))
    fact = evidence.get(n.AMAX) or evidence.get(run.ACTIVATION_MAX)
    if over and fact is not None:
        where = evidence.text(n.AMAX_LAYER)
        found.append(Reason.of(f"values reach {largest:,.0f}{f' in {where}' if where else ''}, over 65,504", fact))
    if not half and not bad_layer:
        found.append(Reason("the number type is not known"))
    return tuple(found)
