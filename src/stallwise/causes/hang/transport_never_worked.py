"""No collective ever completed: all ranks joined the first one and no data moves.

## What it means
Every rank issued the same operation and waits. Since not even the first finished, program order is not the problem:
the path between the GPUs is. Usual suspects are broken peer-to-peer (IOMMU, ACS), shared memory, a firewall between
data interfaces, or a faulty link.

## Why it costs
The job never starts and burns its whole timeout first.

## What else looks so
A mismatch shows different operations or sizes. A rank that never arrived shows up as missing. With some collectives
completed the path works, and the question becomes who stopped.

## Fix
Switch off one path at a time and try again: NCCL_P2P_DISABLE=1, then NCCL_SHM_DISABLE=1, then NCCL_IB_DISABLE=1. The one
that makes it work names the culprit; fix that path rather than leaving it off.

## How the gain is found
Not in seconds: the job starts.
"""

from __future__ import annotations

from stallwise.doctor.findings.clue import Clue
from stallwise.doctor.findings.finding import Finding, Fix, Reason
from stallwise.doctor.findings.rule import rule
from stallwise.evidence.capture import NCCL_LOG, TOPOLOGY
from stallwise.evidence.catalog.hang import (
    HANG_MISMATCH,
    HANG_MISSING,
    HANG_NEVER_WORKED,
    HANG_OP,
    HANG_RANKS,
    HANG_WORLD,
    INTERFACE_ERROR,
)
from stallwise.evidence.evidence import Evidence

CLUES = (
    Clue(
        (HANG_NEVER_WORKED,),
        lambda e: e.value(HANG_NEVER_WORKED) > 0,
        "decisive",
        "no collective ever completed",
        "collectives completed before",
    ),
)


@rule(HANG_NEVER_WORKED)
def transport_never_worked(evidence: Evidence) -> Finding | None:
    """The first collective never finished, on any rank, though all joined it."""
    never = evidence.get(HANG_NEVER_WORKED)
    if never is None or never.number <= 0 or evidence.all(HANG_MISMATCH) or evidence.all(INTERFACE_ERROR):
        return None
    op, ranks = evidence.get(HANG_OP), evidence.get(HANG_RANKS)
    world = evidence.value(HANG_WORLD, 0.0)
    everyone = ranks is not None and world > 0 and ranks.number >= world
    missing = [f for f in evidence.all(HANG_MISSING) if f.note != "silent"]
    because = [Reason.of(f"last completed: none, on {ranks or 'all'} reporting ranks", never)]
    if op:
        because.append(Reason.of(f"all wait in the same {op.value}", op))
    return Finding(
        headline=f"No collective ever completed: {ranks or 'the'} ranks stand in the first one",
        confidence=0.5 if missing else 0.85 if everyone or world == 0 else 0.75,
        because=tuple(because),
        against=tuple(Reason.of(f"{f.value} did not join", f) for f in missing[:1]),
        fixes=(
            Fix(
                "Try NCCL_P2P_DISABLE=1; if that works, switch off IOMMU and ACS for the GPUs' PCIe path.",
                worth="the job starts",
                cost="one run; then a firmware setting",
            ),
            Fix(
                "Then NCCL_SHM_DISABLE=1 (container's /dev/shm) and NCCL_IB_DISABLE=1 (RDMA path), one at a time.",
                worth="names the broken path",
                cost="two runs",
            ),
        ),
        avoid="Do not look for a mismatch in the program: all ranks wait in the same first operation.",
        next=(NCCL_LOG, TOPOLOGY),
        blocking=True,
    )
