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

from dataclasses import replace

from stallwise.doctor.findings.clue import Clue, above, below, over, says_one_of
from stallwise.doctor.findings.finding import Finding, Fix, Reason
from stallwise.doctor.findings.rule import rule
from stallwise.evidence.capture import LAYER_STATS, Capture
from stallwise.evidence.catalog import expected, stated
from stallwise.evidence.catalog import numerics as n
from stallwise.evidence.evidence import Evidence
from stallwise.evidence.fact import Fact

CLIPPED = 0.001  # of the values; under it the error stays within rounding
LONG_LOSS, SHORT_LOSS = 0.05, 0.015  # points of accuracy: far beyond and within the noise of eight-bit papers
IN_RESULTS = 0.75  # no layer was seen to clip, and a longer position encoding could fail as well
ROUNDING = 0.04  # relative error of E4M3 with a fitting scale

# After a change to FP8 with static scales.


@rule()
def fp8_saturation(evidence: Evidence) -> Finding | None:
    """Judges the worst layer; without layers, results that fall with the length alone."""
    return (_in_layers(evidence) if evidence.all(n.FP8_LAYER) else None) or _in_results(evidence)


def _in_results(evidence: Evidence) -> Finding | None:
    """Eight bits against sixteen on the same tasks: long ones lost much, short ones nothing. Rounding would hurt both."""
    now = _now(evidence)
    then, short = evidence.get(stated.ACCURACY, run="before"), evidence.get(stated.ACCURACY_SHORT_DROP)
    eight = any(word in evidence.text(stated.FORMAT).lower() for word in EIGHT_BITS)
    if not (now and then and short and eight) or then.number - now.number < LONG_LOSS or short.number > SHORT_LOSS:
        return None
    if evidence.value(stated.SATURATED_SHARE, 1.0) < CLIPPED or evidence.value(expected.CLIP_RATIO, 2.0) <= 1.0:
        return None  # somebody looked at the layers, and nothing clips
    found = advise(evidence)
    seen = Reason.of(
        f"accuracy {then} -> {now} on long inputs, and {short} lost on short ones: rounding would hurt both",
        now,
        then,
        short,
    )
    return replace(found, confidence=IN_RESULTS, because=(seen, *found.because))


def _now(evidence: Evidence) -> Fact | None:
    return next((f for f in evidence.all(stated.ACCURACY) if f.scope.run is None), None)


def _in_layers(evidence: Evidence) -> Finding | None:
    share, error = evidence.value(n.FP8_SATURATED, 0.0), evidence.value(n.FP8_ERROR, 0.0)
    over = evidence.value(n.FP8_OVER_RANGE, 1.0)
    if share < CLIPPED and error < 2 * ROUNDING and over < 2:
        return None
    layer, contexts = evidence.text(n.FP8_LAYER), evidence.text(n.FP8_CONTEXTS)
    usual = evidence.value(n.FP8_USUAL_ERROR, 0.0)
    facts = [f for q in (n.FP8_SATURATED, n.FP8_OVER_RANGE, n.FP8_CONTEXTS, n.FP8_ERROR) if (f := evidence.get(q))]
    clips = f"clips {share:.1%} of its values; its largest" if share > 0 else "leaves its range: its largest value"
    because = [Reason.of(f"layer {layer} {clips} is {over:.3g}x the calibrated one", *facts[:2])]
    if (hit := evidence.value(n.FP8_LAYERS_HIT, 1.0)) > 1:
        because.append(Reason.of(f"{hit:.0f} modules are that far out of range", *facts[:1]))
    then, now = evidence.get(stated.ACCURACY, run="before"), _now(evidence)
    if then and now and then.number > now.number:
        because.append(Reason.of(f"accuracy {then} -> {now}: {100 * (then.number - now.number):.3g} points", now, then))
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
        headline=f"FP8 clips layer {layer}{long}: " + (f"{share:.1%} of its values at worst" if share > 0 else f"values reach {over:.3g}x its range"),
        confidence=0.95 if share >= 0.005 or error >= 0.05 or over >= 2 else 0.75,
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


# FP8 scales that do not reach as far as the data, while only suspected.
BY_LENGTH = Capture(
    "task accuracy by context length, FP8 and BF16 side by side",
    "lm_eval --model vllm --tasks TASK --limit 200 --model_args pretrained=MODEL,max_model_len=4096 (then 8192, 16384, 32768)",
    "an hour of evaluation",
)


FOUR_BITS = ("int4", "4-bit", "4 bit", "fp4", "gptq", "awq", "nf4", "q4")
EIGHT_BITS = ("fp8", "e4m3", "e5m2", "int8", "8-bit", "8 bit")


def _few_bits(evidence: Evidence) -> bool | None:
    return any(w in evidence.text(stated.FORMAT).lower() for w in (*EIGHT_BITS, *FOUR_BITS))


CLUES = (
    Clue((n.FP8_SATURATED,), lambda e: e.value(n.FP8_SATURATED) >= CLIPPED, "decisive, needed", "values clip in FP8"),
    Clue((stated.FORMAT,), _few_bits, "hint, needed", "the model was cut to eight bits or fewer", "no format of few bits is involved"),
    over(stated.TASK_CONTEXT, stated.CALIBRATION_CONTEXT, 1.9, "fair",
         "the task is longer than anything the scales were calibrated on", "calibration covered this length"),
    below(stated.ACCURACY_SHORT_DROP, 0.015, "hint", "short inputs are fine: range grows with length", "short inputs suffer too"),
    says_one_of(stated.SCALING, ("tensor",), "hint", "one scale a tensor: a single outlier decides it", "scales are fine-grained"),
    above(expected.CLIP_RATIO, 1.1, "strong, needed", "activations pass the calibrated maximum", "activations stay inside the calibrated range"),
    above(stated.SATURATED_SHARE, 0.0005, "required", "values clip at the format's limit", "nothing clips"),
)  # fmt: skip


def advise(evidence: Evidence) -> Finding:
    """Localise by layer and length, recalibrate, refine scales, keep attention wider."""
    if any(w in evidence.text(stated.FORMAT).lower() for w in FOUR_BITS):
        return _four_bits(evidence)
    limit = evidence.value(expected.FP8_MAX, 448.0)
    ratio, worst = evidence.get(expected.CLIP_RATIO), evidence.text(stated.WORST_LAYER)
    task, short = evidence.get(stated.TASK_CONTEXT), evidence.get(stated.CALIBRATION_CONTEXT)
    now = _now(evidence)
    then = evidence.get(stated.ACCURACY, run="before")
    back = f"most of the {then} -> {now} loss" if now and then else "most of the loss"
    because = [
        Reason(f"the format ends at {limit:.0f}; scales map the calibrated maximum there, and what is larger clips")
    ]
    if now and then:
        because.append(Reason.of(f"accuracy {then} -> {now}{f' at {task} tokens' if task else ''}", now, then))
    if task:
        because.append(Reason(
            f"sums and logits over {task} tokens reach further than over {short or 'short'}: log2 of the growth in range is lost in bits"))  # fmt: skip
    if layer := evidence.get(expected.FP8_LAYER):
        because.append(Reason.of(f"likeliest to break: {layer.value}", layer))
    if ratio:
        because.append(Reason(f"observed over calibrated maximum: {ratio}{f' in {worst}' if worst else ''}"))
    return Finding(
        headline="FP8 scales do not reach as far as long-context activations: values saturate.",
        confidence=0.0,
        because=tuple(because),
        summary="The mean loss hides it, because few positions of few layers clip, and only where the context is long.",
        fixes=(
            Fix("Recalibrate the scales on data of the task's own length" + (f" ({task} tokens)" if task else ""), worth=back,
                cost="one calibration pass", risk="a larger scale costs resolution on short inputs"),
            Fix("Finer scales for the offending layers: per row or per block (MX) instead of per tensor", worth=f"{back}, without loss on short inputs",
                cost="a few percent of GEMM speed, more scale memory", risk="needs kernel support"),
            Fix("Keep attention scores and their accumulation in higher precision; quantise QKV and output projections only",
                worth="removes the length-dependent part", cost="the FP8 gain of attention, a minor share of FLOP", risk="none for accuracy"),
            Fix("Per-layer sensitivity: switch layers back to BF16 one group at a time and rank them", worth="names the two or three layers that matter",
                cost="one evaluation a group", risk="interactions between layers"),
        ),
        avoid="Blaming the size of the calibration set before knowing which layer drifts: more data of the same length changes nothing.",
        next=(LAYER_STATS, BY_LENGTH),
    )  # fmt: skip


def _four_bits(evidence: Evidence) -> Finding:
    """Weights of four bits: what one scale must serve, and which weights cannot be served."""
    now = _now(evidence)
    then = evidence.get(stated.ACCURACY, run="before")
    back = f"most of the {then} -> {now} loss" if now and then else "most of the loss"
    return Finding(
        headline="Four bits hold 16 values: one scale serves too many weights, or outliers that need their own.",
        confidence=0.0,
        because=(Reason("a group's largest weight sets the scale of all; the others round to a fifteenth of its range"),),
        summary="Quantisation error sits in few channels and layers: those that large activations meet.",
        fixes=(
            Fix("Smaller groups: a scale for every 128, then 64 or 32 weights", worth=back, cost="0.125 to 0.5 bits a weight more", risk="kernel support"),
            Fix("A method that looks at activations (AWQ, GPTQ with act-order), calibrated on the task's own data and length", worth=back, cost="an hour", risk="none"),
            Fix("Keep the worst layers and outlier channels wide (first, last, down projections): rank them by switching back one group at a time",
                worth="names the few that matter", cost="an evaluation a group", risk="interactions"),
            Fix("Eight bits where the task still suffers", worth="nearly all of it", cost="twice the weight bytes: decode about half as fast", risk="none"),
        ),
        avoid="More calibration data of the same kind: it moves scales, not the number of values.",
        next=(LAYER_STATS, BY_LENGTH),
    )  # fmt: skip
