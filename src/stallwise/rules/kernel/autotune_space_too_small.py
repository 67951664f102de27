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

from stallwise.evidence.catalog import autotune as a
from stallwise.evidence.catalog import stated
from stallwise.evidence.evidence import Evidence
from stallwise.evidence.fact import Fact
from stallwise.evidence.quantity import Quantity
from stallwise.findings.finding import Finding, Fix, Gain, Reason
from stallwise.findings.rule import rule
from stallwise.rules.kernel._autotune_space_too_small import advise

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
    told = (
        advise(evidence) if evidence.get(stated.CUSTOM_SPEEDUP) else None
    )  # a list beside somebody's account of the kernel
    return Finding(
        headline=f"the autotuner chose among {configs:.0f} configurations" + (f"; {fixed} never varied" if fixed and few else ""),
        confidence=0.85 if few and configs < FEW else 0.7 if few else 0.45,
        because=(*because, *(told.because if told else ())),
        gain=gain,
        fixes=(
            Fix("sweep tiles, stages and warps at three values each, pruned by shared memory and registers", cost="minutes"),
            *((Fix(f"extend the axes at their edge: {edges}", cost="a few more runs"),) if edges else ()),
            *(told.fixes[1:] if told else ()),
        ),
        avoid="Do not tune by rules of thumb for one axis: measure which axis matters.",
        next=(a.SWEEP,),
    )  # fmt: skip


def _facts(evidence: Evidence, *quantities: Quantity) -> list[Fact]:
    return [f for q in quantities if (f := evidence.get(q)) is not None]
