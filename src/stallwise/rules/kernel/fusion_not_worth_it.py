"""A fused custom kernel loses to the library path it replaced.

## What it means
A cheap operation was fused into a matrix product to save a round trip through memory, but the product itself now runs in a
custom kernel that is slower than the library's.

## Why it costs
The cheap operation is a few percent of the unfused time; the product is the rest. Losing a tenth of the product's rate costs
more than the whole cheap operation.

## What else looks so
A custom kernel that was tuned over too few configurations: with better tiles it may still win.

## Fix
Go back to the library's product and fuse on its terms: an epilogue or prologue of CUTLASS or cuBLASLt, or torch.compile's
pointwise fusion around it. Fuse the cheap operation where its output feeds several products.

## How the gain is found
One over the measured speed-up: the time of the unfused path is known.
"""

from __future__ import annotations

from stallwise.evidence.capture import NCU, TORCH_TRACE
from stallwise.evidence.catalog import stated
from stallwise.evidence.evidence import Evidence
from stallwise.findings.clue import above, below
from stallwise.findings.finding import Finding, Fix, Reason
from stallwise.findings.rule import rule
from stallwise.findings.symptom import Symptom

SMALL_PART = 0.1  # of the unfused time: fusing it away wins at most this

EXPLAINS = {Symptom.CUSTOM_KERNEL_SLOWER: 0.20}  # the usual end of "faster than cuBLAS" attempts on plain shapes
CLUES = (
    above(
        stated.WIDE_SEARCH_SPEEDUP, 1.0, 0.1, 8.0,
        "a wide search beats the library", "even the best configuration of a wide search loses to the library",
    ),
    below(stated.CHEAP_OP_SHARE, SMALL_PART, 3.0, 0.4, "the fused operation was cheap to begin with", "the fused operation was costly"),
    below(stated.AUTOTUNE_CONFIGS, 8, 0.7, 1.6, "few configurations were tried", "many configurations were tried"),
)  # fmt: skip


@rule(stated.CUSTOM_SPEEDUP, stated.WIDE_SEARCH_SPEEDUP)
def fusion_not_worth_it(evidence: Evidence) -> Finding | None:
    """Fires when the best of a wide search still loses."""
    speed, wide, cheap = (
        evidence.get(q) for q in (stated.CUSTOM_SPEEDUP, stated.WIDE_SEARCH_SPEEDUP, stated.CHEAP_OP_SHARE)
    )
    if speed is None or wide is None or max(speed.number, wide.number) >= 1.0:
        return None
    reasons = [Reason.of(f"the best of a wide search reaches {wide} of the library path", wide)]
    small = cheap is not None and cheap.number < SMALL_PART
    if cheap is not None and small:
        most = 1 / (1 - cheap.number)
        reasons.append(
            Reason.of(
                f"the fused operation was {cheap} of the unfused time: {most:.2f}x is the most there is to win", cheap
            )
        )
    return Finding(
        headline="The fusion does not pay: its matrix product is slower than the library's.",
        confidence=0.88 if small else 0.8,
        because=tuple(reasons),
        fixes=(
            Fix("Return to the library's product and fuse around it (torch.compile, cuBLASLt epilogues)",
                worth=f"{1 / wide.number:.2f}x over the best custom configuration", cost="none", risk="none"),
            Fix("Fuse the cheap operation where its output feeds several products, such as Q, K and V",
                worth="the saved round trip, once for three products", cost="a kernel", risk="the same trap"),
            Fix("CUTLASS prologue or epilogue fusion, if the round trip matters", worth="the library's rate plus the saved traffic",
                cost="C++ templates", risk="build and maintenance"),
        ),
        avoid="More tuning of the same kernel: the search was wide and it still loses.",
        next=(NCU, TORCH_TRACE),
    )  # fmt: skip
