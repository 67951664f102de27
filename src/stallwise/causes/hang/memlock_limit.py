"""The locked-memory limit is too small for RDMA.

## What it means
RDMA needs its buffers pinned in memory; the kernel lets a process lock only as much as its limit (ulimit -l). Batch
systems and containers often start processes with a few megabytes, whatever limits.conf says.

## Why it costs
Registering a buffer fails with "Cannot allocate memory" and the job does not start, or falls back to sockets.

## What else looks so
Real lack of host memory. A missing RDMA device fails earlier and says so.

## Fix
Raise it where the processes are really started: LimitMEMLOCK=infinity for the scheduler's daemon, --ulimit memlock=-1 for
containers, memlock unlimited in limits.conf for shells; then log in again and check inside the launcher.

## How the gain is found
Not in seconds: the job starts.
"""

from __future__ import annotations

from stallwise.doctor.findings.clue import Clue
from stallwise.doctor.findings.finding import Finding, Fix, Reason
from stallwise.doctor.findings.rule import rule
from stallwise.evidence.capture import Capture
from stallwise.evidence.catalog.hang import MEMLOCK_ERROR, MEMLOCK_LIMIT
from stallwise.evidence.evidence import Evidence

SMALL_BYTES = 128e6  # NCCL registers tens of megabytes per connection; defaults are 64 KiB to 64 MiB
CLUES = (
    Clue((MEMLOCK_ERROR,), lambda e: True, "decisive when seen", "memory could not be registered for RDMA"),
    Clue(
        (MEMLOCK_LIMIT,),
        lambda e: e.value(MEMLOCK_LIMIT) < SMALL_BYTES,
        "fair, needed",
        "the locked-memory limit is small",
        "locked memory is not limited",
    ),
)
LIMITS = Capture("the limit where the ranks start", "mpirun -np 2 bash -c 'ulimit -l'", "seconds")


@rule(MEMLOCK_ERROR)
def memlock_limit(evidence: Evidence) -> Finding | None:
    """Registration fails for lack of memory; the limit itself, where known, confirms or denies."""
    errors = evidence.all(MEMLOCK_ERROR)
    limits = evidence.all(MEMLOCK_LIMIT)
    small = [f for f in limits if f.number < SMALL_BYTES]
    if limits and not small:
        confidence = 0.4
    else:
        confidence = 0.96 if small else 0.88
    because = [Reason.of(str(f.value), f) for f in errors[:2]]
    because += [Reason.of(f"processes may lock only {f}", f) for f in small[:1]]
    return Finding(
        headline="RDMA cannot lock enough memory",
        summary=str(errors[0].value)[:200],
        confidence=confidence,
        because=tuple(because),
        against=tuple(Reason.of("the limit shown is not small", f) for f in limits[:1] if not small),
        fixes=(
            Fix(
                "Raise the limit where ranks start: LimitMEMLOCK=infinity (daemon), --ulimit memlock=-1 (container), memlock unlimited (limits.conf).",
                worth="the job starts",
                cost="a restart of the daemon or login",
            ),
        ),
        avoid="Do not free GPU or host memory: it is a limit, not a shortage.",
        next=(LIMITS,),
        explains=("rank-died-first", "gdr-disabled"),
        blocking=True,
    )
