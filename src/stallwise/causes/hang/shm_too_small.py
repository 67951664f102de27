"""Shared memory ran out: /dev/shm is too small for NCCL or for the data loader's workers.

## What it means
Ranks of one node exchange data, and loader workers hand over batches, through files in /dev/shm. Containers get 64 MiB
of it by default.

## Why it costs
Initialisation fails, or a worker dies with a bus error and the job hangs on its missing batch.

## What else looks so
A full disk says the same words about another path. Out of GPU memory is something else entirely.

## Fix
Start the container with --shm-size=16g or --ipc=host; in Kubernetes mount an emptyDir with medium Memory at /dev/shm.

## How the gain is found
Not in seconds: the job starts.
"""

from __future__ import annotations

from stallwise.doctor.findings.clue import Clue
from stallwise.doctor.findings.finding import Finding, Fix, Reason
from stallwise.doctor.findings.rule import rule
from stallwise.evidence.capture import NCCL_LOG
from stallwise.evidence.catalog.hang import SHM_ERROR
from stallwise.evidence.evidence import Evidence

CLUES = (Clue((SHM_ERROR,), lambda e: True, "decisive when seen", "shared memory could not be allocated"),)


@rule(SHM_ERROR)
def shm_too_small(evidence: Evidence) -> Finding | None:
    """Somebody says that shared memory could not be allocated."""
    errors = evidence.all(SHM_ERROR)
    return Finding(
        headline="/dev/shm is too small",
        summary=str(errors[0].value)[:200],
        confidence=0.95,
        because=tuple(Reason.of(str(f.value), f) for f in errors[:3]),
        scope=errors[0].scope,
        fixes=(
            Fix(
                "Start the container with --shm-size=16g or --ipc=host (Kubernetes: an emptyDir of medium Memory at /dev/shm).",
                worth="the job starts",
                cost="a restart",
            ),
            Fix(
                "Fewer loader workers or smaller prefetch, if the limit cannot be raised.",
                worth="fits",
                cost="slower input",
            ),
        ),
        avoid="Do not change NCCL's network settings: the failure is inside the node.",
        next=(NCCL_LOG,),
        explains=("rank-died-first", "network-fallback-socket", "wrong-network-interface"),
        blocking=True,
    )
