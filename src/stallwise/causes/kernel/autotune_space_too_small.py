"""The autotuner chose among too few configurations.

## What it means
A tuned kernel is as good as the best entry of its list. With a handful of entries, or with an axis (stages, warps, a tile
dimension) at one value only, the good ones are likely missing.

## Why it costs
Between a poor and a good configuration of one kernel lies a factor of two to five.

## What else looks so
A kernel whose best configuration in a wide sweep still loses to the library is limited by its design, not by the list.

## Fix
Sweep every axis at three values or more and prune what does not fit in shared memory or registers; extend the axes whose best
value lies at the end of what was tried.

## How the gain is found
The spread between configurations of that kernel, or the distance to the library path.
"""

from __future__ import annotations

from stallwise.doctor.findings.clue import above, below
from stallwise.doctor.findings.finding import Finding, Fix, Gain, Reason
from stallwise.doctor.findings.rule import rule
from stallwise.evidence.capture import AUTOTUNE_SWEEP, NCU, TORCH_TRACE, Capture
from stallwise.evidence.catalog import autotune, expected, stated
from stallwise.evidence.catalog import autotune as a
from stallwise.evidence.evidence import Evidence
from stallwise.evidence.fact import Fact
from stallwise.evidence.quantity import Quantity

FEW = 8  # configurations
NARROW = 3  # axes varied: tiles, stages and warps at least


@rule(a.CONFIGS)
def autotune_space_too_small(evidence: Evidence) -> Finding | None:
    """Judges the list of configurations."""
    configs, axes = evidence.value(a.CONFIGS), evidence.value(a.AXES_VARIED, 0.0)
    fixed, edges = evidence.text(a.AXES_FIXED), evidence.text(a.EDGES)
    if evidence.value(stated.WIDE_SEARCH_SPEEDUP, 2.0) <= 1.0:
        return None  # a wide search was made and lost: the list is not the reason
    few = configs < FEW or axes < NARROW
    at_edge = len([e for e in edges.split(", ") if e]) >= 2
    if not few and not at_edge:
        return None
    because = [
        Reason.of(f"{configs:.0f} configurations over {axes:.0f} axes", *_facts(evidence, a.CONFIGS, a.AXES_VARIED))
    ]
    because += _sides(evidence)
    if fixed:
        because.append(Reason.of(f"one value only for {fixed}", *_facts(evidence, a.AXES_FIXED)))
    if edges:
        because.append(
            Reason.of(f"the best values lie at the end of what was tried: {edges}", *_facts(evidence, a.EDGES))
        )
    spilling = evidence.value(a.SPILLING, 0.0)
    if spilling >= 0.5:
        because.append(
            Reason.of(f"{spilling:.0%} of the configurations spill registers", *_facts(evidence, a.SPILLING))
        )
    best, library = evidence.value(a.BEST), evidence.value(a.LIBRARY)
    gain = Gain(0.0, best - library, "down to the library path at best") if best > library else None
    if gain is None and best == best:
        gain = Gain(0.0, best * 0.5, "configurations of one kernel often differ by 2x and more")
    advice = (
        advise(evidence) if evidence.get(stated.CUSTOM_SPEEDUP) else None
    )  # a list beside somebody's account of the kernel
    return Finding(
        headline=f"the autotuner chose among {configs:.0f} configurations" + (f"; {fixed} never varied" if fixed and few else ""),
        confidence=0.85 if few and configs < FEW else 0.7 if few else 0.45,
        because=(*because, *(advice.because if advice else ())),
        gain=gain,
        fixes=(
            advice.fixes[0] if advice else
            Fix("Widen the autotune grid: tiles, num_stages and num_warps at three values each, pruned by shared memory and registers", cost="minutes"),
            *((Fix(f"extend the axes at their edge: {edges}", cost="a few more runs"),) if edges else ()),
            *(advice.fixes[1:] if advice else ()),
        ),
        avoid=advice.avoid if advice else "Do not tune by rules of thumb for one axis: measure which axis matters.",
        summary=advice.summary if advice else "",
        next=(AUTOTUNE_SWEEP,),
    )  # fmt: skip


def _facts(evidence: Evidence, *quantities: Quantity) -> list[Fact]:
    return [f for q in quantities if (f := evidence.get(q)) is not None]


# Too few configurations tried, while only suspected.
FEW_advised = 8  # configurations; public Triton GEMM tutorials start from about this many
TUNED = Capture(
    "the autotuner's timing of every configuration",
    "TRITON_PRINT_AUTOTUNING=1 python bench.py 2> autotune.log",
    "one run",
)
SASS = Capture("the kernel's SASS", "python -c \"print(kernel.asm['sass'])\" | grep -cE 'HGMMA|WGMMA|HMMA'", "seconds")

CLUES = (
    below(stated.AUTOTUNE_CONFIGS, FEW_advised, "fair", "only a handful of configurations were tried", "the search was wide"),
    below(stated.BLOCK_K, 64, "hint when seen", "no BLOCK_K of 64 or more: too shallow for wgmma", "BLOCK_K is deep enough"),
    below(stated.NUM_STAGES, 3, "hint when seen", "at most 2 stages: loads hardly overlap", "stages are deep enough"),
    above(stated.WIDE_SEARCH_SPEEDUP, 1.0, "strong, needed",
          "a wide search finds a configuration that beats the library", "even the best of a wide search loses to the library"),
)  # fmt: skip


def _sides(evidence: Evidence) -> list[Reason]:
    """The own kernel's time against that of the path it replaces, and its speed against what was hoped for."""
    found = []
    own, library = evidence.get(a.BEST), evidence.get(a.LIBRARY)
    if own is not None and library is not None and own.number > library.number > 0:
        ratio = library.number / own.number
        found.append(
            Reason.of(f"the kernel takes {own}, the path it replaces {library}: {ratio:.3g}x its speed", own, library)
        )
    speed, hoped = evidence.get(stated.CUSTOM_SPEEDUP), evidence.get(stated.EXPECTED_SPEEDUP)
    if speed and hoped and speed.number > 0:
        gap = f"{hoped.number / speed.number:.3g}x apart, which tile shapes alone can make"
        found.append(Reason.of(f"{speed} measured, {hoped} hoped for: {gap}", speed, hoped))
    elif speed and not found and 0 < speed.number < 1:
        found.append(Reason.of(f"{speed} the speed of the path it replaces", speed))
    return found


def advise(evidence: Evidence) -> Finding:
    """Widen the search, look at the SASS, ask whether the fusion pays, fall back to the library's epilogue."""
    tried = evidence.get(stated.AUTOTUNE_CONFIGS) or evidence.get(autotune.CONFIGS)
    space, one_pass = evidence.get(expected.AUTOTUNE_SPACE), evidence.get(expected.FUSED_PASS)
    speed = evidence.get(stated.CUSTOM_SPEEDUP)
    cheap = evidence.get(stated.CHEAP_OP_SHARE)
    because = []
    if tried and space and space.number > 0:
        because.append(
            Reason(
                f"{tried} of about {space} configurations worth trying were tried ({tried.number / space.number:.0%})"
            )
        )
    because += _sides(evidence)
    because.append(
        Reason(
            "the unfused path calls cuBLAS for the linear: the kernel must match that product before the fusion wins anything"
        )
    )
    depth = evidence.value(stated.BLOCK_K, 64.0)
    if depth < 64:
        because.append(
            Reason(
                f"BLOCK_K {depth:.0f}: one wgmma takes 16 of K in 16 bits, so only {depth / 16:.0f} run between two waits; 64 and more is usual on Hopper"
            )
        )
    if one_pass:
        because.append(Reason(
            f"the norm's own pass (a read and a write) is {one_pass} of the product's time ({one_pass.note}): fused away whole it wins "
            f"{1 + one_pass.number:.2f}x at most; what eager's separate kernels move beside that, torch.compile saves too"))  # fmt: skip
    ceiling = (
        f"at most 1/(1 - {cheap}) = {1 / (1 - cheap.number):.2f}x even if the cheap op became free"
        if cheap and cheap.number < 1
        else f"at most {1 + one_pass.number:.2f}x for one linear, more where the norm feeds several (QKV)"
        if one_pass
        else "the cheap op's share of the unfused time bounds the gain"
    )
    return Finding(
        headline="The autotuner saw almost nothing of the space: the kernel runs in a poor configuration.",
        confidence=0.0,
        because=tuple(because),
        summary="The unfused path calls a tuned library GEMM; a fused kernel must first match that GEMM before fusion can pay.",
        fixes=(
            Fix("Widen the autotune grid: BLOCK_M and N in {64, 128, 256}, BLOCK_K in {64, 128}, 3 to 5 stages, 4 or 8 warps",
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
