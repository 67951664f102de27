"""Matrix work runs in TF32 or fp32 where 16 bits would do.

## What it means
The tensor cores are used, but with TF32 inputs: half the rate of bf16 and twice the bytes.

## Why it costs
Every product takes up to twice the time, and every activation twice the memory.

## What else looks so
A solver or a loss that needs fp32 keeps it for good reason. A kernel at the DRAM roof gains by its bytes, not its flops.

## Fix
Run the products under bf16 autocast and keep fp32 where sums need it (norms, softmax, loss, optimizer).

## How the gain is found
TF32 products at the 16-bit rate: a third to a half of their time.
"""

from __future__ import annotations

from stallwise.doctor.findings.counters import Counters
from stallwise.doctor.findings.finding import Finding, Fix, Reason
from stallwise.doctor.findings.rule import rule
from stallwise.doctor.findings.step_facts import StepFacts, ms, percent
from stallwise.evidence.catalog import gains
from stallwise.evidence.catalog import kernel as k
from stallwise.evidence.catalog import step as s
from stallwise.evidence.evidence import Evidence
from stallwise.evidence.ledger import Category

NOTICEABLE = 0.05  # of all kernel time


@rule(k.CONTRACTION, per="kernel")
def precision_headroom(evidence: Evidence) -> Finding | None:
    """Judges one kernel."""
    c = Counters(evidence)
    tf32 = c.get(k.TF32_SHARE) >= 0.5 or c.word(k.NAMED_PRECISION) == "tf32"
    if (
        not tf32
        or c.get(k.TIME_SHARE, 1.0) < NOTICEABLE
        or c.get(k.CONTRACTION) < 0.7
        or (c.knows(k.TENSOR_SHARE) and c.tensor < 0.1)
    ):
        return None
    return Finding(
        headline="TF32 products: 16-bit inputs would run at up to twice the rate",
        confidence=0.7,
        because=(c.reason("the product takes TF32 inputs", k.NAMED_PRECISION, k.TF32_SHARE),),
        gain=c.gain(0.25, 0.5, "TF32 products at the 16-bit rate"),
        fixes=(Fix("bf16 autocast around the model", cost="a line; compare the loss", risk="sums need fp32"),),
        avoid="Do not rewrite the kernel: the rate of TF32 is its ceiling.",
        optional=True,
    )


# The same cause over a whole run, as a trace shows it: TF32 or fp32 products on matrix units.
DOMINATES = 0.2  # of the step: below, switching the whole model for it is not worth the risk


@rule(s.WIDE_TIME, s.STEP_TIME)
def in_trace(evidence: Evidence) -> Finding | None:
    """Looks for matrix work in TF32."""
    facts = StepFacts(evidence)
    wide = facts.seconds(s.WIDE_TIME)
    if facts.share(wide) < DOMINATES:
        return None
    low, high = facts.range_of(s.WIDE_SAVING)
    gain = facts.less_work(
        gains.DTYPE, low, high, "matrix work at the 16-bit rate; at best other kernels move half the bytes too"
    )
    return Finding(
        headline=f"Matrix work runs in TF32 or fp32: {ms(wide)} of every {ms(facts.step_s)} would run faster in 16 bits.",
        confidence=0.8,
        category=Category.COMPUTE,
        gain=gain,
        because=(
            facts.because(
                f"{percent(facts.share(wide))} of the {facts.unit} is matrix work in a 32-bit type", s.WIDE_TIME
            ),
        ),
        against=(Reason("a solver or a loss that needs fp32 would be a reason to keep it"),),
        fixes=(
            Fix(
                "bf16 autocast around the model",
                gain,
                cost="a few lines",
                risk="compare the loss curve; keep reductions in fp32",
            ),
        ),
        avoid="Do not switch optimizer states first: products are where the time is.",
    )
