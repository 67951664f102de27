"""Double-precision instructions run where single precision was meant.

## What it means
The FP64 pipe is active in a kernel that works on floats: a literal without `f`, a call of `pow` or `exp` on doubles, a Python
scalar promoted to float64.

## Why it costs
Data-centre chips do FP64 at half the FP32 rate, all others at 1/32 or 1/64. Conversions between the two cost extra pipes.

## What else looks so
Scientific code and double-precision products use FP64 by choice.

## Fix
Write `1.0f`, use `expf` and friends, compile with warnings for double promotion, cast scalars before the kernel.

## How the gain is found
The FP64 pipe's share of the time, less what the same work takes in FP32 on this chip.
"""

from __future__ import annotations

from stallwise.doctor.findings.clue import Clue
from stallwise.doctor.findings.counters import Counters
from stallwise.doctor.findings.finding import Finding, Fix, Reason
from stallwise.doctor.findings.rule import rule
from stallwise.doctor.findings.step_facts import StepFacts, ms, percent
from stallwise.evidence.catalog import kernel as k
from stallwise.evidence.catalog import step as s
from stallwise.evidence.evidence import Evidence
from stallwise.evidence.ledger import Category

ACTIVE = 0.08  # of the FP64 pipe: more than an address or a final scale
USUAL_RATIO = 32.0  # FP32 over FP64 on chips that are not built for it

CLUES = (Clue((k.FP64_SHARE,), lambda e: e.value(k.FP64_SHARE) >= ACTIVE, "strong, needed", "the FP64 pipe is active"),)


@rule(k.TIME, per="kernel")
def fp64_in_hot_path(evidence: Evidence) -> Finding | None:
    """Judges one kernel."""
    c = Counters(evidence)
    share = max(c.get(k.FP64_SHARE), c.get(k.FP64_PEAK_SHARE))
    if share < ACTIVE:
        return None
    types = c.word(k.ARGUMENT_TYPES)
    meant = "double" in types or "f64" in types or c.get(k.TENSOR_SHARE) >= 0.3
    accident = not meant and any(t in types for t in ("float", "half", "bf", "f32", "f16"))
    ratio = c.get(k.FP32_OVER_FP64, USUAL_RATIO)
    saved = share * (1 - 1 / ratio)
    busiest = c.word(k.TOP_PIPE).upper().startswith("FP64") or share >= max(c.get(k.FMA_SHARE), c.get(k.TENSOR_SHARE))
    part = max(saved, 1 - 1 / ratio if busiest and share >= 0.5 else 0.0)
    return Finding(
        headline=f"double precision at work: FP64 pipe {share:.0%} busy" + ("" if meant else " in a float kernel"),
        confidence=0.92 if accident else 0.5 if meant else 0.78,
        because=(
            c.reason(f"FP64 pipe {share:.0%}, FMA pipe {c.get(k.FMA_SHARE):.0%}", k.FP64_SHARE, k.FP64_PEAK_SHARE),
            *((c.reason(f"its arguments are {types}", k.ARGUMENT_TYPES),) if types else ()),
            c.reason(f"FP32 is {ratio:.0f}x as fast on this chip", k.FP32_OVER_FP64),
        ),
        gain=c.gain(0.5 * part, part, f"FP64 work at the FP32 rate, {ratio:.0f}x here"),
        fixes=(
            Fix("write literals and math calls as float (1.0f, expf); cast scalars before the kernel", cost="a few characters"),
        ),
        avoid="Do not trust the source's types: one double literal promotes the whole expression.",
        explains=("compute-roof",),
        optional=meant,
    )  # fmt: skip


# The same cause over a whole run, as a trace shows it: matrix products in double precision.
NOTABLE = 0.1  # of the step: a small solve in double precision may be meant
# Cards for data centres do fp64 products at about the rate of fp32 on ordinary cores, consumer cards at a sixty-fourth of it.
SLOWER = (2.0, 30.0)


@rule(s.DOUBLE_TIME, s.STEP_TIME)
def in_trace(evidence: Evidence) -> Finding | None:
    """Looks for matrix work in double precision."""
    facts = StepFacts(evidence)
    double = facts.seconds(s.DOUBLE_TIME)
    if facts.share(double) < NOTABLE:
        return None
    low, high = (double * (1 - 1 / ratio) for ratio in SLOWER)
    gain = facts.device_gain(low, high, "the same products in single precision or less")
    return Finding(
        headline=f"Matrix work runs in double precision: {ms(double)} of every {ms(facts.step_s)}.",
        confidence=0.88,
        category=Category.COMPUTE,
        gain=gain,
        because=(facts.because(f"{percent(facts.share(double))} of the {facts.unit} is fp64 products", s.DOUBLE_TIME),),
        against=(Reason("a solver may need it"),),
        fixes=(Fix("find the float64 tensor (numpy arrays default to it) and convert it once", gain, cost="one line"),),
        avoid="Do not lower the precision of the whole model before this one tensor.",
    )
