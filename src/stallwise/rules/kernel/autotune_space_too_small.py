"""The autotuner tried too few configurations to find a good one.

## What it means
A tuned kernel is only as good as the list it was tuned over. With two or three tile shapes, shallow stages or one number of
warps, the best of the list may be far from the best there is.

## Why it costs
Tile shape, pipeline depth and warps decide whether tensor instructions are fed. A wrong choice costs a factor of two and
more on the same code.

## What else looks so
A kernel whose best configuration, after a wide search, still loses to the library: then the fusion itself does not pay.
A kernel that spills in every configuration: then registers are the limit.

## Fix
Search wider: larger and smaller tiles, BLOCK_K of 64 and 128, three to five stages, four and eight warps. Look where the
best one lies: at the edge of what was tried, the search must go on.

## How the gain is found
A wide search's best time where one was run; otherwise the library's time is the bound, since tuned tiles reach it.
"""

from __future__ import annotations

from stallwise.evidence.capture import NCU
from stallwise.evidence.catalog import stated, tuning
from stallwise.evidence.evidence import Evidence
from stallwise.findings.finding import Finding, Fix, Reason
from stallwise.findings.rule import rule

FEW = 8  # configurations; tutorials of matrix products start from about this many
FLAT = 1.1  # slowest over fastest: when all configurations are alike, more of them will not help


@rule(tuning.TIMED_CONFIGS, per="kernel")
def autotune_space_too_small(evidence: Evidence) -> Finding | None:
    """Judges the log of one kernel's tuning."""
    count, edge, spread = (evidence.get(q) for q in (tuning.TIMED_CONFIGS, tuning.BEST_AT_EDGE, tuning.SPREAD))
    wide = evidence.get(stated.WIDE_SEARCH_SPEEDUP)
    if count is None or count.number >= FEW or (wide is not None and wide.number <= 1.0):
        return None
    at_edge = edge is not None and bool(edge.value)
    if spread is not None and count.number > 2 and spread.number < FLAT and not at_edge:
        return None
    reasons = [Reason.of(f"only {count} configurations were timed", count)]
    if at_edge and edge is not None:
        reasons.append(Reason.of(f"the best one is the largest tried in {edge}: nothing beyond was looked at", edge))
    if wide is not None:
        reasons.append(Reason.of(f"a wide search reaches {wide} of the library path", wide))
    confidence = 0.9 if wide is not None else 0.6 if at_edge else 0.5
    return Finding(
        headline=f"The autotuner timed {count} configurations: too few to know the best.",
        confidence=confidence,
        because=tuple(reasons),
        fixes=(
            Fix(
                "Widen the search: BLOCK_M and N in {64, 128, 256}, BLOCK_K in {64, 128}, 3 to 5 stages, 4 or 8 warps",
                worth=f"the slowest and fastest tried already differ by {spread}" if spread else "often 1.5x and more",
                cost="minutes of tuning a shape",
                risk="tuned for one card and shape",
            ),
        ),
        avoid="Blaming the compiler before the list of configurations is wide.",
        next=(tuning.AUTOTUNE_LOG, NCU),
    )
