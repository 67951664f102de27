"""One rank failed; everything the others report is the consequence.

## What it means
A process ended (out of memory, an exception, a signal, an eviction) and its peers noticed only when their collective
timed out or their connection closed. The loudest messages are the last ones; the cause is the first.

## Why it costs
The job is dead from that moment, but ranks wait for their timeout, so the GPUs stay booked for minutes.

## What else looks so
Ranks in different collectives also time out, and all of them live. A rank that is only slow arrives. An error while
setting up shared memory, interfaces or locked memory ends ranks too, and has its own page.

## Fix
Find the earliest error: by time across logs, or the launcher's "root cause". Fix that rank's problem; ignore the
timeouts. Shorter timeouts and asynchronous error handling make the rest stop sooner.

## How the gain is found
Not in seconds of a step: the restart, and the wait until the timeout.
"""

from __future__ import annotations

from stallwise.doctor.findings.clue import Clue
from stallwise.doctor.findings.finding import Finding, Fix, Reason
from stallwise.doctor.findings.rule import rule
from stallwise.evidence.capture import DMESG, RANK_LOGS
from stallwise.evidence.catalog import job
from stallwise.evidence.catalog.fabric import FABRIC_RANKS
from stallwise.evidence.catalog.hang import (
    FIRST_FAILURE,
    HANG_MISMATCH,
    HANG_MISSING,
    HANG_RANKS,
    HANG_TIMEOUT,
    HANG_WORLD,
    INTERFACE_ERROR,
    MEMLOCK_ERROR,
    MISMATCH_MESSAGE,
    PEER_LOST,
    PROCESS_KILLED,
    SHM_ERROR,
    STALLED_TENSORS,
    TRUNCATED_MESSAGE,
)
from stallwise.evidence.evidence import Evidence
from stallwise.evidence.fact import WHOLE, Fact

CLUES = (
    Clue((PEER_LOST,), lambda e: True, "strong when seen", "ranks say that a peer went away"),
    Clue((PROCESS_KILLED,), lambda e: True, "strong when seen", "a process was killed from outside"),
)
SETUP = (SHM_ERROR, MEMLOCK_ERROR, INTERFACE_ERROR, TRUNCATED_MESSAGE, MISMATCH_MESSAGE)
# What a peer that is gone makes others say, and a link that drops packets too: the message itself leaves it open.
OF_A_LINK_TOO = ("verbs-completion-error", "peer-or-network")
CONSEQUENCES = ("straggler-rank", "transport-never-worked", "checkpoint-stall")
# An allocation of NCCL's own that fails says that the card was full, not what filled it.
OOM = ("oom-activations", "oom-optimizer-state", "oom-other-process", "oom-fragmentation", "oom-sharding-peak")


@rule()
def rank_died_first(evidence: Evidence) -> Finding | None:
    """A failure of one rank's own among others' waiting, or peers that say it went away."""
    first, lost, killed = evidence.all(FIRST_FAILURE), evidence.all(PEER_LOST), evidence.all(PROCESS_KILLED)
    if not (first or lost or killed) or not _many_ranks(evidence):
        return None
    if any(evidence.all(q) for q in (*SETUP, HANG_MISMATCH)) and not killed and not _named(first):
        return None  # the failure has a name of its own
    # The launcher names it, the log ends with it, or NCCL itself failed on that GPU.
    fatal = [f for f in first if f.note or f.scope.gpu is not None]
    waiting = evidence.all(HANG_TIMEOUT) or evidence.all(HANG_RANKS) or evidence.all(STALLED_TENSORS)
    if not lost and not killed and not waiting and not fatal:
        return None
    because = [Reason.of(_what(f), f) for f in first[:1]]
    because += [
        Reason.of(f"raised from your code at {f.value}", f)
        for f in evidence.all(job.RAISED_AT)
        if first and f.note and f.note in str(first[0].value)
    ][-1:]
    because += [
        Reason.of(f"killed from outside: {f.value}", f) for f in killed[:2] if not first or f.value != first[0].value
    ]
    because += [Reason.of(f"a peer notices: {f.value}", f) for f in lost[:2]]
    echoes = evidence.all(HANG_TIMEOUT)
    culprit = _culprit(evidence, first, killed, lost)
    return Finding(
        headline=f"{culprit} died first; the other ranks only report it",
        summary=str((first or killed or lost)[0].value)[:200],
        confidence=_confidence(evidence, first, lost, killed, bool(echoes)),
        because=tuple(because),
        scope=(first or killed)[0].scope if first or killed else WHOLE,  # who reports a loss is not who was lost
        fixes=(
            Fix(
                f"Repair what ended {culprit[0].lower() + culprit[1:]}: the first error, not the timeouts after it.",
                worth="the job runs",
                cost="depends on the error",
            ),
            Fix(
                "Stop the rest sooner: TORCH_NCCL_ASYNC_ERROR_HANDLING=1 and a shorter timeout.",
                worth="no GPUs booked for nothing",
                cost="a setting",
            ),
        ),
        not_here=tuple(Reason.of(f"the timeout after {f}: a consequence", f) for f in echoes[:1]),
        avoid=""
        if not first and not killed and _may_be_a_link(evidence, lost)
        else "Do not start with NCCL settings or the network: the connection closed because its process ended.",
        next=(DMESG, RANK_LOGS),
        explains=(*CONSEQUENCES, *(OOM if first and first[0].scope.gpu is not None else ())),
        blocking=True,
    )


def _confidence(evidence: Evidence, first: list[Fact], lost: list[Fact], killed: list[Fact], timed_out: bool) -> float:
    if first and first[0].scope.gpu is None and _kind(evidence, first[0]) == "out-of-memory":
        return 0.6  # what filled the memory is the better answer
    if killed or (first and (lost or timed_out)):
        return 0.93
    if timed_out and lost:
        return 0.6  # the lost peer may just be the first whose timeout ran out
    if not first and _may_be_a_link(evidence, lost):
        return 0.6
    return 0.85 if lost else 0.75


def _may_be_a_link(evidence: Evidence, lost: list[Fact]) -> bool:
    return bool(lost) and all(_kind(evidence, f) in OF_A_LINK_TOO for f in lost)


def _many_ranks(evidence: Evidence) -> bool:
    known = [f.number for q in (HANG_WORLD, FABRIC_RANKS, HANG_RANKS) for f in evidence.all(q)]
    signs = [f for q in (FIRST_FAILURE, PROCESS_KILLED, HANG_TIMEOUT) for f in evidence.all(q)]
    named = max((f.scope.rank for f in signs if f.scope.rank is not None), default=0)
    return max(known, default=0) > 1 or named > 0 or bool(evidence.all(PEER_LOST) or evidence.all(STALLED_TENSORS))


def _named(first: list[Fact]) -> bool:
    return bool(first) and (first[0].scope.rank is not None or first[0].scope.gpu is not None)


def _what(fact: Fact) -> str:
    where = f"rank {fact.scope.rank}: " if fact.scope.rank is not None else ""
    tail = f" ({fact.note})" if fact.note else ""
    return f"{where}{fact.value}{tail}"


def _kind(evidence: Evidence, fact: Fact) -> str:
    event = evidence.at(fact.source)
    return event.kind if event is not None else ""


def _culprit(evidence: Evidence, first: list[Fact], killed: list[Fact], lost: list[Fact]) -> str:
    for fact in [*first, *killed]:
        if fact.scope.rank is not None:
            return f"Rank {fact.scope.rank}"
        if fact.scope.gpu is not None:
            return f"The rank on GPU {fact.scope.gpu}"
    for fact in evidence.all(HANG_MISSING):  # the others name who did not come
        if fact.scope.rank is not None:
            return f"Rank {fact.scope.rank}"
    for fact in lost[:1]:
        event = evidence.at(fact.source)
        if (
            peer := event.word("peer") if event is not None else fact.note
        ):  # who reports an event notes how the log ends
            return f"Peer {peer}"
    return "One rank"
