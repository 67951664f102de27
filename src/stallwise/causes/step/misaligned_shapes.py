"""Odd dimensions make matrix products fall back to slow kernels.

## What it means
Tensor cores are fed by loads of 16 bytes. When a row does not start on such a border (a vocabulary or hidden size
that is no multiple of 8 in 16 bits), libraries choose kernels that load one or two elements at once, often of an
older generation.

## Why it costs
These kernels run at a half to a quarter of the aligned rate, forward and backward.

## What else looks so
Odd sizes on stacks that pad by themselves cost nothing: the kernel's name or its rate decides, not the number.

## Fix
Pad vocabulary, feed-forward and head sizes to multiples of 64 (8 at least). Unused rows cost next to nothing.

## How the gain is found
The time of kernels with narrow loads, at 2 to 4.5 times their rate.
"""

from __future__ import annotations

from stallwise.doctor.findings.finding import Finding, Fix, Gain, Reason
from stallwise.doctor.findings.rule import rule
from stallwise.doctor.findings.step_facts import NOTICEABLE, WORTH_FIXING, StepFacts, ms, percent
from stallwise.evidence.capture import STEP_SHAPE
from stallwise.evidence.catalog import gains
from stallwise.evidence.catalog import kernel as k
from stallwise.evidence.catalog import step as s
from stallwise.evidence.evidence import Evidence
from stallwise.evidence.ledger import Category

AVOID = "Do not change the precision first: narrow loads slow every type."
SHORT = 60  # characters of a kernel's name that a person reads


@rule()
def misaligned_shapes(evidence: Evidence) -> Finding | None:
    """Looks for matrix kernels that cannot load whole vectors, in steps of a trace or in a summary of kernels."""
    facts = StepFacts(evidence)
    if not facts.knows(s.NARROW_TIME) or not facts.knows(s.STEP_TIME):
        return _of_summary(evidence)
    slow = facts.seconds(s.NARROW_TIME)
    if facts.share(slow) < NOTICEABLE:
        return None
    low, high = facts.range_of(s.NARROW_SAVING)
    gain = facts.less_work(gains.ALIGNED, low, high, "kernels with narrow loads at 2 to 4.5 times their rate")
    what = facts.word(s.NARROW_SHAPE)
    matrix = facts.seconds(s.GEMM_TIME) + facts.seconds(s.CONV_TIME)
    return Finding(
        headline=f"Odd dimensions force slow matrix kernels: {ms(slow)} of every {ms(facts.step_s)}.",
        confidence=0.93,
        category=Category.COMPUTE,
        gain=gain,
        because=(
            facts.because(
                f"{percent(slow / matrix if matrix else 0)} of the matrix time is in kernels that load one or two elements at once",
                s.NARROW_TIME,
            ),
            facts.because(f"for example {_short(what)}", s.NARROW_SHAPE),
        ),
        fixes=_fixes(gain),
        avoid=AVOID,
        next=(STEP_SHAPE,),
    )


def _of_summary(evidence: Evidence) -> Finding | None:
    narrow = evidence.get(k.NARROW_SHARE)
    if narrow is None or narrow.number < NOTICEABLE:
        return None
    return Finding(
        headline=f"Odd dimensions force slow matrix kernels: {percent(narrow.number)} of all kernel time.",
        confidence=0.93,
        because=(
            Reason.of(
                f"{percent(narrow.number)} of the kernel time is in kernels that load one or two elements at once",
                narrow,
            ),
            Reason.of(f"for example {_short(narrow.note)}", narrow),
        ),
        fixes=_fixes(None),
        avoid=AVOID,
        next=(STEP_SHAPE,),
        optional=narrow.number < WORTH_FIXING,
    )


def _fixes(gain: Gain | None) -> tuple[Fix, ...]:
    return (
        Fix(
            "pad vocabulary, feed-forward and head sizes to multiples of 64",
            gain,
            cost="a little memory",
            risk="checkpoints need the same padding",
        ),
        Fix("pad the batch or sequence dimension where it is the odd one", gain, cost="wasted rows"),
    )


def _short(name: str) -> str:
    inner = name.split("<")[-1].split(">")[0] if "<" in name else name
    return inner[:SHORT]
