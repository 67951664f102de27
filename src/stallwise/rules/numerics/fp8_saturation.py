"""A layer's values leave the range that FP8 was calibrated for, and are clipped.

## What it means
FP8 with a fixed scale maps the calibrated largest value to the largest FP8 number. Data beyond it (longer contexts, other
domains) clips to that value, however large it is.

## Why it costs
Clipping is a gross error where rounding is a small one: accuracy falls with the context while short tests look fine.

## What else looks so
A relative error of 2 to 4% a layer is FP8's ordinary rounding. A few values in a million beyond the range do no harm.

## Fix
Recalibrate on data as long as what is served; dynamic scales per row or block; the one bad layer in BF16.

## How the gain is found
The share of clipped values and the error of the layer by context, against the error of the others.
"""

from __future__ import annotations

from stallwise.evidence.capture import LAYER_STATS
from stallwise.evidence.catalog import numerics as n
from stallwise.evidence.evidence import Evidence
from stallwise.findings.clue import Clue
from stallwise.findings.finding import Finding, Fix, Reason
from stallwise.findings.rule import rule

CLIPPED = 0.001  # of the values; under it the error stays within rounding
ROUNDING = 0.04  # relative error of E4M3 with a fitting scale

# After a change to FP8 with static scales.
CLUES = (
    Clue((n.FP8_SATURATED,), lambda e: e.value(n.FP8_SATURATED) >= CLIPPED, "decisive, needed", "values clip in FP8"),
)


@rule(n.FP8_LAYER)
def fp8_saturation(evidence: Evidence) -> Finding | None:
    """Judges the worst layer."""
    share, error = evidence.value(n.FP8_SATURATED, 0.0), evidence.value(n.FP8_ERROR, 0.0)
    over = evidence.value(n.FP8_OVER_RANGE, 1.0)
    if share < CLIPPED and error < 2 * ROUNDING and over < 2:
        return None
    layer, contexts = evidence.text(n.FP8_LAYER), evidence.text(n.FP8_CONTEXTS)
    usual = evidence.value(n.FP8_USUAL_ERROR, 0.0)
    facts = [f for q in (n.FP8_SATURATED, n.FP8_OVER_RANGE, n.FP8_CONTEXTS, n.FP8_ERROR) if (f := evidence.get(q))]
    because = [Reason.of(f"layer {layer} clips {share:.1%} of its values; its largest is {over:.1f}x the calibrated one",
                         *facts[:2])]  # fmt: skip
    if contexts:
        because.append(Reason.of(f"it clips at contexts of {contexts} tokens", *facts))
    if error and usual:
        because.append(
            Reason.of(f"its relative error is {error:.1%}, the others' {usual:.1%} (ordinary rounding)", *facts)
        )
    only = evidence.value(n.FP8_LAYERS_HIT, 1.0) <= 1
    repair = evidence.text(n.FP8_REPAIR)
    from_ = evidence.value(n.FP8_FROM)
    long = f" from {from_:,.0f} tokens on" if from_ == from_ else ""
    return Finding(
        headline=f"FP8 clips layer {layer}{long}: {share:.1%} of its values at worst",
        confidence=0.95 if share >= 0.005 or error >= 0.05 else 0.75,
        because=tuple(because),
        fixes=(
            Fix(repair[:1].upper() + repair[1:], worth=f"error back to about {usual:.1%}" if usual else "", cost="a calibration run"),
            Fix("per-row or per-block (dynamic) scales", cost="an amax pass a layer; a few per cent"),
            Fix(f"keep layer {layer} in BF16", cost="one layer at 16 bit" if only else "several layers at 16 bit"),
        ),
        not_here=(Reason(f"an error of {usual:.1%} in the other layers is FP8's own rounding"),) if usual else (),
        avoid="Do not go back to BF16 everywhere: one layer is the whole damage." if only else "Do not judge FP8 on short inputs.",
        next=(LAYER_STATS,),
        blocking=True,
    )  # fmt: skip
