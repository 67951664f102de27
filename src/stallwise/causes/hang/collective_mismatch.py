"""Ranks are in different collectives: each waits for the others to join its own.

## What it means
All ranks of a group must call the same collectives, with the same sizes and types, in the same order. Here they do
not: one took another branch, skipped or added a call, or brought a tensor of another shape.

## Why it costs
Nothing moves until the timeout, minutes to hours later, and then the job dies. With unlucky sizes it does not hang but
computes garbage.

## What else looks so
A rank that died leaves the same waiting ranks behind; its own log ends with an error. A rank that is only late is in
no collective at all, and arrives in the end. Ranks with fewer batches than others are the most common way to get
here, and have their own page.

## Fix
Look at the two code lines that wait. Make the decision before them the same on all ranks: no collective under
`if rank == 0`, none inside data-dependent branches, the same number of batches, parameters in the same order.
`TORCH_DISTRIBUTED_DEBUG=DETAIL` compares shapes and order before every collective and names the rank that differs.

## How the gain is found
Not in seconds: the job runs on.
"""

from __future__ import annotations

from stallwise.doctor.findings.clue import Clue
from stallwise.doctor.findings.finding import Finding, Fix, Reason
from stallwise.doctor.findings.rule import rule
from stallwise.evidence.capture import FLIGHT_RECORDER, STACKS
from stallwise.evidence.catalog.hang import (
    FIRST_FAILURE,
    HANG_FRAME,
    HANG_LAST_ACT,
    HANG_MISMATCH,
    HANG_MISSING,
    HANG_NEVER_WORKED,
    HANG_TIMEOUT,
    MISMATCH_MESSAGE,
    PLACES_DIFFER,
    PLACES_DIFFER_AT_THE_END,
    PROCESS_KILLED,
)
from stallwise.evidence.evidence import Evidence
from stallwise.evidence.fact import Fact

CLUES = (
    Clue((HANG_MISMATCH,), lambda e: True, "decisive when seen", "ranks wait in different collectives"),
    Clue((HANG_NEVER_WORKED,), lambda e: e.value(HANG_NEVER_WORKED) > 0, "against", "no collective ever completed"),
)


@rule()
def collective_mismatch(evidence: Evidence) -> Finding | None:
    """A library's own words, or the ranks' collectives side by side."""
    words, sides = evidence.all(MISMATCH_MESSAGE), evidence.all(HANG_MISMATCH)
    if not words and not sides:
        return None
    because = [Reason.of(str(f.value), f) for f in sides[:2]] + [Reason.of(_short(f), f) for f in words[:2]]
    frames = evidence.all(HANG_FRAME)
    because += [Reason.of(f"{f.note}: {f.value}", f) for f in frames[:3] if str(f.value) not in str(because)]
    acts = [f for f in evidence.all(HANG_LAST_ACT) if f.scope.rank is not None]
    because += [Reason.of(f"rank {f.scope.rank} was last seen {f.value}", f) for f in acts[:2]]
    missing = evidence.all(HANG_MISSING)
    stack_only = bool(sides) and not words and all(f.note in (PLACES_DIFFER, PLACES_DIFFER_AT_THE_END) for f in sides)
    ended = all(f.note == PLACES_DIFFER_AT_THE_END for f in sides)
    # Where a rank ran into its timeout nobody had left: a peer that dies closes its connections at once.
    waited = bool(evidence.all(HANG_TIMEOUT)) and not evidence.all(PROCESS_KILLED) and not evidence.all(FIRST_FAILURE)
    return Finding(
        headline="Ranks wait in different collectives, each for the others",
        summary=_summary(sides, words, missing),
        confidence=0.93 if not stack_only else 0.7 if ended else 0.85,
        because=tuple(because),
        scope=(sides or words)[0].scope,
        fixes=(
            Fix(
                f"Make all ranks take the same path to {_place(frames)}: no collective behind a rank-local decision.",
                worth="the job runs on",
                cost="a code change",
            ),
            Fix(
                "Run once with TORCH_DISTRIBUTED_DEBUG=DETAIL: it stops at the first call that differs and names it.",
                worth="finds the line",
                cost="slow; one run",
            ),
        ),
        avoid="Do not raise the timeout: the ranks will never meet.",
        next=(FLIGHT_RECORDER, STACKS),
        # Calls that differ under one number were made before anybody died of them.
        explains=("straggler-rank",) if stack_only and not waited else ("straggler-rank", "rank-died-first"),
        blocking=True,
    )


def _short(fact: Fact) -> str:
    return str(fact.value)[:220]


def _place(frames: list[Fact]) -> str:
    return str(frames[0].value) if frames else "the collective"


def _summary(sides: list[Fact], words: list[Fact], missing: list[Fact]) -> str:
    if sides:
        return str(sides[0].value)[:260]
    return _short(words[0])
