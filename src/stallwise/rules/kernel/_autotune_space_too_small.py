"""Too few configurations tried, while only suspected."""

from __future__ import annotations

from stallwise.evidence.capture import NCU, TORCH_TRACE, Capture
from stallwise.evidence.catalog import expected, stated
from stallwise.evidence.evidence import Evidence
from stallwise.findings.clue import above, below
from stallwise.findings.finding import Finding, Fix, Reason
from stallwise.findings.symptom import Symptom

EXPLAINS = {Symptom.CUSTOM_KERNEL_SLOWER: "mostly", Symptom.SLOW_KERNEL: "at times"}
FEW = 8  # configurations; public Triton GEMM tutorials start from about this many
TUNED = Capture(
    "the autotuner's timing of every configuration",
    "TRITON_PRINT_AUTOTUNING=1 python bench.py 2> autotune.log",
    "one run",
)
SASS = Capture("the kernel's SASS", "python -c \"print(kernel.asm['sass'])\" | grep -cE 'HGMMA|WGMMA|HMMA'", "seconds")

CLUES = (
    below(stated.AUTOTUNE_CONFIGS, FEW, "fair", "only a handful of configurations were tried", "the search was wide"),
    below(stated.BLOCK_K, 64, "hint when seen", "no BLOCK_K of 64 or more: too shallow for wgmma", "BLOCK_K is deep enough"),
    below(stated.NUM_STAGES, 3, "hint when seen", "at most 2 stages: loads hardly overlap", "stages are deep enough"),
    above(stated.WIDE_SEARCH_SPEEDUP, 1.0, "strong, needed",
          "a wide search finds a configuration that beats the library", "even the best of a wide search loses to the library"),
)  # fmt: skip


def advise(evidence: Evidence) -> Finding:
    """Widen the search, look at the SASS, ask whether the fusion pays, fall back to the library's epilogue."""
    tried, space = evidence.get(stated.AUTOTUNE_CONFIGS), evidence.get(expected.AUTOTUNE_SPACE)
    speed, hoped = evidence.get(stated.CUSTOM_SPEEDUP), evidence.get(stated.EXPECTED_SPEEDUP)
    cheap = evidence.get(stated.CHEAP_OP_SHARE)
    because = []
    if tried and space and space.number > 0:
        because.append(
            Reason(
                f"{tried} of about {space} configurations worth trying were tried ({tried.number / space.number:.0%})"
            )
        )
    if speed and hoped and speed.number > 0:
        because.append(
            Reason(
                f"{speed} measured, {hoped} hoped for: {hoped.number / speed.number:.1f}x apart, which tile shapes alone can make"
            )
        )
    if evidence.value(stated.BLOCK_K, 64.0) < 64:
        because.append(
            Reason(
                f"BLOCK_K {evidence.get(stated.BLOCK_K)}: one wgmma takes 16 of K in 16-bit, so 32 leaves two between waits"
            )
        )
    ceiling = (
        f"at most 1/(1 - {cheap}) = {1 / (1 - cheap.number):.2f}x even if the cheap op became free"
        if cheap and cheap.number < 1
        else "the cheap op's share of the unfused time bounds the gain"
    )
    return Finding(
        headline="The autotuner saw almost nothing of the space: the kernel runs in a poor configuration.",
        confidence=0.0,
        because=tuple(because),
        summary="The unfused path calls a tuned library GEMM; a fused kernel must first match that GEMM before fusion can pay.",
        fixes=(
            Fix("Widen the grid: BLOCK_M and N in {64, 128, 256}, BLOCK_K in {64, 128}, 3 to 5 stages, 4 or 8 warps",
                worth=f"{speed} -> about the library's rate, 1.0x and a little more" if speed else "up to the library's rate",
                cost="minutes of tuning a shape", risk="tuned per shape and card"),
            Fix("Check the SASS for wgmma (HGMMA); without it no tile shape helps", worth="several times, if it is missing", cost="seconds", risk="none"),
            Fix("Ask whether this fusion can pay: price the cheap op; fuse it where its output feeds several products (QKV)", worth=ceiling,
                cost="thought", risk="none"),
            Fix("Fall back to the library's GEMM with an epilogue (CUTLASS) or prologue fusion", worth="the library's rate plus the saved round trip",
                cost="C++ templates", risk="build and maintenance"),
        ),
        avoid="Blaming Triton: the same compiler reaches the library's rate with other tiles; the levers are the configuration and the intensity.",
        next=(TUNED, NCU, SASS, TORCH_TRACE),
    )  # fmt: skip
