"""Ranks run different builds of NCCL, or talk to a stale process of an earlier job.

## What it means
The layout of bootstrap messages changes between NCCL releases. Ranks of different builds read each other's bytes wrong:
truncated messages, addresses of no known family, or silence. A leftover process listening on the same port looks
the same.

## Why it costs
The job never starts.

## What else looks so
A wrong interface fails with refused or unreachable connections instead. The framework may ship its own NCCL and ignore
the one installed on the system.

## Fix
Use one image or one environment for all nodes, check the version line each rank prints, remove stray copies
(LD_LIBRARY_PATH, LD_PRELOAD), end leftover processes.

## How the gain is found
Not in seconds: the job starts.
"""

from __future__ import annotations

from stallwise.doctor.findings.clue import Clue
from stallwise.doctor.findings.finding import Finding, Fix, Reason
from stallwise.doctor.findings.rule import rule
from stallwise.evidence.capture import Capture
from stallwise.evidence.catalog.fabric import NCCL_VERSION, NCCL_WARNING
from stallwise.evidence.catalog.hang import (
    HANG_RANKS,
    HANG_TIMEOUT,
    INTERFACE_ERROR,
    NCCL_VERSIONS,
    PEER_LOST,
    STALLED_TENSORS,
    TRUNCATED_MESSAGE,
)
from stallwise.evidence.evidence import Evidence
from stallwise.evidence.fact import Fact

CLUES = (
    Clue((NCCL_VERSIONS,), lambda e: bool(_trouble(e)), "strong when seen", "ranks print different NCCL versions"),
    Clue((TRUNCATED_MESSAGE,), lambda e: True, "decisive when seen", "peers exchange messages of different layout"),
)
VERSIONS = Capture(
    "the NCCL every rank loads", "srun python -c 'import torch; print(torch.cuda.nccl.version())'", "seconds"
)
TROUBLE = (HANG_TIMEOUT, HANG_RANKS, INTERFACE_ERROR, STALLED_TENSORS, PEER_LOST, NCCL_WARNING)


def _trouble(evidence: Evidence) -> list[Fact]:
    """What a mismatch would do: without it two runs of two builds may lie side by side."""
    return [f for q in TROUBLE for f in evidence.all(q)]


@rule()
def nccl_version_mismatch(evidence: Evidence) -> Finding | None:
    """Versions that differ, or messages that only differing versions explain."""
    versions, garbled = evidence.all(NCCL_VERSIONS), evidence.all(TRUNCATED_MESSAGE)
    if not versions and not garbled:
        return None
    in_logs = [f for f in versions if f.note == "log"]
    if not garbled and not _trouble(evidence):
        return None
    because = [Reason.of(f"NCCL {f.value}", f) for f in [*in_logs, *versions][:2]]
    because += [Reason.of(str(f.value), f) for f in garbled[:2]]
    same = evidence.all(NCCL_VERSION)
    against = []
    if garbled and not versions and len(same) > 1:
        against.append(Reason.of("all versions shown are the same: then it is a stale process on that port", same[0]))
    return Finding(
        headline="Ranks run different NCCL builds"
        if versions
        else "Ranks do not speak the same NCCL protocol: another build, or a stale process",
        confidence=0.95 if versions and garbled else 0.85 if garbled else 0.75 if in_logs else 0.55,
        because=tuple(dict.fromkeys(because)),
        against=tuple(against),
        fixes=(
            Fix(
                "Start every rank from one image or environment; check the version line of each.",
                worth="the job starts",
                cost="a rebuild",
            ),
            Fix("End leftover processes of earlier jobs on all nodes.", worth="frees the port", cost="seconds"),
        ),
        avoid="Do not change interfaces or timeouts: the peers do connect.",
        next=(VERSIONS,),
        explains=("network-fallback-socket", "rank-died-first", "wrong-network-interface"),
        blocking=bool(garbled) or bool(versions),
    )
