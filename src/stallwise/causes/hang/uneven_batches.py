"""Ranks have different numbers of batches, so one leaves the loop while the others still wait for it.

## What it means
The data does not divide evenly over the ranks (or a filter, a failed shard or a per-rank sampler changed the count).
The rank with fewer batches goes on to whatever comes next; the others stand in the collective of one more batch.

## Why it costs
The job hangs at the end of an epoch or of validation, every time.

## What else looks so
Ranks in different collectives for other reasons. A slow loader on one rank makes it late, not absent.

## Fix
Give all ranks the same number of batches: drop_last, a padded distributed sampler, or the smallest count agreed by an
all-reduce at the start. Where counts must differ, use the framework's join context. Evaluation with sharded
parameters needs equal counts as well: its forward pass communicates.

## How the gain is found
Not in seconds: the epoch ends.
"""

from __future__ import annotations

from stallwise.doctor.findings.clue import Clue
from stallwise.doctor.findings.finding import Finding, Fix, Reason
from stallwise.doctor.findings.rule import rule
from stallwise.evidence.capture import FLIGHT_RECORDER, RANK_LOGS
from stallwise.evidence.catalog.hang import BATCHES_UNEVEN, HANG_MISMATCH, HANG_RANKS, HANG_TIMEOUT, STALLED_TENSORS
from stallwise.evidence.evidence import Evidence

CLUES = (Clue((BATCHES_UNEVEN,), lambda e: True, "decisive when seen", "ranks have different numbers of batches"),)


@rule(BATCHES_UNEVEN)
def uneven_batches(evidence: Evidence) -> Finding | None:
    """Counts that differ, in a job that hangs."""
    uneven = evidence.all(BATCHES_UNEVEN)
    waiting = [f for q in (HANG_TIMEOUT, HANG_RANKS, STALLED_TENSORS) for f in evidence.all(q)]
    if not waiting:
        return None
    because = [Reason.of(str(f.value), f) for f in uneven[:2]]
    because += [Reason.of(str(f.value), f) for f in evidence.all(HANG_MISMATCH)[:1]]
    return Finding(
        headline=f"Ranks have different numbers of batches: {uneven[0].value}",
        confidence=0.93,
        because=tuple(because),
        fixes=(
            Fix(
                "Give every rank the same number of batches: drop_last=True, a padding sampler, or agree on the smallest count.",
                worth="the job runs on",
                cost="a few samples per epoch",
            ),
            Fix(
                "Wrap the loop in the framework's join context where counts must differ.",
                worth="the job runs on",
                cost="a little per step",
            ),
        ),
        avoid="Do not raise the timeout: the rank with fewer batches will not come back.",
        next=(RANK_LOGS, FLIGHT_RECORDER),
        explains=("collective-mismatch", "straggler-rank"),
        blocking=True,
    )
