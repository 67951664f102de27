"""A matrix product runs on ordinary cores while the tensor cores stand idle.

## What it means
The kernel multiplies matrices (or convolves, or attends) with fused multiply-adds of the ordinary cores. The tensor
pipe, which does the same work 4 to 30 times faster depending on the chip, shows no activity.

## Why it costs
The ceiling of the ordinary cores is a small part of the chip: an H100 or H200 has about 67 TFLOP/s there and 989 on its
tensor cores in 16 bit. No tuning of occupancy, tiles or loads can lift a kernel over the lower ceiling.

## What else looks so
A kernel that is no matrix product (a stencil, a physics loop) cannot use tensor cores. A rate above the ordinary cores'
ceiling proves that tensor cores are in use. fp32 kept on purpose (a solver) is a choice, not an accident.

## Fix
Feed 16-bit inputs, or allow TF32 for fp32 inputs (`torch.set_float32_matmul_precision("high")`); use the library's
product, WMMA/WGMMA or `tl.dot` in a kernel of your own; pad dimensions to multiples of 8 elements where a library refuses.

## How the gain is found
The time the measured arithmetic would need on the tensor cores at 40 to 80% of their peak, never less than the time the
measured DRAM traffic needs; the rest of the kernel's time is the gain.
"""

from __future__ import annotations

from stallwise.causes.kernel._gemm_numbers import gemm_numbers
from stallwise.doctor.findings.arithmetic import narrower_types
from stallwise.doctor.findings.clue import Clue, over, says_one_of, yes
from stallwise.doctor.findings.counters import Counters
from stallwise.doctor.findings.finding import Finding, Fix, Reason
from stallwise.doctor.findings.rule import rule
from stallwise.doctor.findings.step_facts import NOTICEABLE, StepFacts, ms, percent
from stallwise.evidence.catalog import expected, gains, run, stated
from stallwise.evidence.catalog import kernel as k
from stallwise.evidence.catalog import step as s
from stallwise.evidence.catalog.card import HAND_WRITTEN_SHARE
from stallwise.evidence.evidence import Evidence
from stallwise.evidence.ledger import Category

IDLE = 0.02  # of the tensor pipe: below, the few cycles are half-precision moves that share the pipe
LIKELY_MATRIX = 0.7
LEAST_SHARE = 0.03  # of all kernel time
USUAL_RATIO = 8.0  # tensor over vector peak where the chip is not known; 4 (small cards) to 28 (B200)


@rule(k.CONTRACTION, per="kernel")
def tensor_cores_unused(evidence: Evidence) -> Finding | None:
    """Judges one kernel."""
    c = Counters(evidence)
    matrix = c.get(k.CONTRACTION)
    named = not c.tensor_known and c.word(k.NAMED_PRECISION) == "fp32" and c.get(k.TIME_SHARE, 1.0) >= LEAST_SHARE
    if matrix < LIKELY_MATRIX or not (c.tensor_known or named) or c.tensor >= IDLE:
        return None
    if c.word(k.TOP_PIPE).upper().startswith("FP64") or c.get(k.FP64_SHARE) > c.get(k.FMA_SHARE):
        return None  # double precision: another matter
    if c.dram >= 0.8:  # the memory roof: faster arithmetic would wait for the same bytes
        return None
    ratio = c.get(k.MATRIX_PEAK_RATIO, USUAL_RATIO)
    # A library product on ordinary cores keeps them about 70% busy; counters tell it better where they are known.
    work = max(c.get(k.FMA_SHARE), c.get(k.FP32_PEAK_SHARE), 0.7 if named else 0.05)
    slow, fast = max(work / ratio / 0.4, c.dram), max(work / ratio / 0.8, c.dram)
    types = c.word(k.ARGUMENT_TYPES)
    half = any(t in types for t in ("half", "bf", "f16"))
    because = [c.reason(f"the tensor pipe is at {c.tensor:.1%}" if c.knows(k.TENSOR_SHARE) else
                        "its name is that of an fp32 product on ordinary cores" if named else
                        f"the busiest pipe is {c.word(k.TOP_PIPE)} at {c.get(k.TOP_PIPE_SHARE):.0%}, not the tensor pipe",
                        k.TENSOR_SHARE, k.TOP_PIPE)]  # fmt: skip
    because.append(_why_matrix(c))
    if half:
        because.append(Reason(f"its arguments are already 16 bit ({types}): tensor cores take them as they are"))
    return Finding(
        headline=f"a matrix product on ordinary cores: tensor cores would be up to {ratio:.0f}x faster",
        confidence=0.86 if named else min(0.95, 0.25 + 0.75 * matrix),
        because=(*because, *gemm_numbers(evidence)),
        gain=c.gain(1 - slow, 1 - fast, f"the same work at 40-80% of the tensor peak ({ratio:.0f}x the ordinary cores)"),
        fixes=(Fix("use the library product or tensor-core instructions (WMMA, WGMMA, tl.dot)", cost="a rewrite of the inner loop"),)
        if half
        else narrower_types(evidence, None, None),
        not_here=_not_here(c),
        avoid="Do not start with occupancy or the L1 pressure: both stay under the ordinary cores' ceiling.",
        summary="Everything this kernel saturates belongs to the slow way of multiplying matrices.",
    )  # fmt: skip


def _why_matrix(c: Counters) -> Reason:
    if c.word(k.KIND) == "matrix product":
        return c.reason("its name is that of a matrix product", k.KIND)
    return c.reason(
        f"multiply-adds fed from on-chip copies (L1 and shared memory at {c.get(k.L1_SHARE):.0%}, DRAM at {c.dram:.1%}): "
        "the reuse of a matrix product",
        k.L1_SHARE, k.DRAM_SHARE,
    )  # fmt: skip


def _not_here(c: Counters) -> tuple[Reason, ...]:
    found = []
    if c.get(k.SM_SHARE) >= 0.8:
        found.append(c.reason(f"SM throughput {c.get(k.SM_SHARE):.0%}: busy with the slow pipe", k.SM_SHARE))
    if c.knows(k.ACHIEVED_OCCUPANCY):
        found.append(
            c.reason(f"occupancy {c.get(k.ACHIEVED_OCCUPANCY):.0%}: not the ceiling here", k.ACHIEVED_OCCUPANCY)
        )
    return tuple(found)


# Matrix work on CUDA cores, while only suspected.
CLUES = (
    Clue((k.TENSOR_SHARE,), lambda e: e.value(k.TENSOR_SHARE) < IDLE, "fair, needed", "the tensor pipe is idle"),
    over(run.FLOP_RATE, expected.VECTOR_CEILING, 1.0, "against",
         "the rate is above what CUDA cores alone can do", "CUDA cores alone could do this rate"),
    over(stated.LIBRARY_FLOP_RATE, expected.VECTOR_CEILING, 1.0, "fair",
         "the library's rate needs tensor cores", "the library does not use tensor cores either"),
    says_one_of(stated.CHANGED, ("fp32", "tf32", "precision", "float32"), "strong when seen", "the precision changed", "the precision did not change"),
    yes(stated.WGMMA, "against", "the SASS holds tensor-core instructions", "the SASS holds no tensor-core instruction"),
)  # fmt: skip


# The same cause over a whole run, as a trace shows it: by the names of matrix kernels and their share of the
# step.
MOSTLY = 0.5  # of the slow matrix time outside library calls: autocast does not reach it
SHORT = 70  # characters of a kernel's name that a person reads


@rule(s.SIMT_TIME, s.STEP_TIME)
def in_trace(evidence: Evidence) -> Finding | None:
    """Looks for matrix work on ordinary cores."""
    facts = StepFacts(evidence)
    slow = facts.seconds(s.SIMT_TIME)
    if facts.share(slow) < NOTICEABLE:
        return None
    low, high = facts.range_of(s.SIMT_SAVING)
    gain = facts.less_work(
        gains.DTYPE, low, high, "the same work at the card's tensor rate: TF32 at half its peak to 16 bits at its peak"
    )
    matrix = facts.seconds(s.GEMM_TIME) + facts.seconds(s.CONV_TIME)
    return Finding(
        headline=f"Matrix work runs without tensor cores: {ms(slow)} of every {ms(facts.step_s)}.",
        confidence=0.94,
        category=Category.COMPUTE,
        gain=gain,
        because=(
            facts.because(
                f"{percent(slow / matrix if matrix else 0)} of the matrix time is in fp32 kernels of ordinary cores",
                s.SIMT_TIME,
            ),
            facts.because(f"for example {facts.word(s.SIMT_KERNEL)[:SHORT]}", s.SIMT_KERNEL),
        ),
        fixes=_fixes(evidence, facts, low, high),
        avoid="Do not tune kernels or batch sizes first: the ceiling of these units is the limit.",
        explains=("precision-headroom",),
        optional=facts.is_optional(gain),
    )


def _fixes(evidence: Evidence, facts: StepFacts, low: float, high: float) -> tuple[Fix, ...]:
    gain = facts.gain(low, high, "16-bit products instead of fp32")
    if evidence.value(HAND_WRITTEN_SHARE, 0.0) > MOSTLY:
        return (
            Fix("call the library's product instead of the hand-written kernel, or use its matrix instructions", gain,
                cost="the kernel", risk="rounding of narrower inputs"),
        )  # fmt: skip
    return narrower_types(evidence, gain, facts.gain(low, 0.9 * high, "TF32 instead of fp32"))
