"""A rank that did not arrive, as the logs of a hang show it: no trace, only who waited and what others say."""

from __future__ import annotations

from stallwise.doctor.findings.finding import Finding, Fix, Reason
from stallwise.evidence.capture import FLIGHT_RECORDER, NVIDIA_SMI, STACKS
from stallwise.evidence.catalog import hang as q
from stallwise.evidence.evidence import Evidence
from stallwise.evidence.fact import Fact

OTHER_ANSWERS = (
    q.HANG_MISMATCH, q.MISMATCH_MESSAGE, q.PEER_LOST, q.PROCESS_KILLED, q.FIRST_FAILURE, q.HANG_NEVER_WORKED, q.BATCHES_UNEVEN,
)  # fmt: skip
SAVING = "saving a checkpoint"


def late_in_logs(evidence: Evidence) -> Finding | None:
    """Ranks far slower at one task, ranks whose queue stopped, or a collective that somebody never joined."""
    slow, behind, missing = map(evidence.all, (q.SLOW_RANK, q.HANG_BEHIND, q.HANG_MISSING))
    stuck = evidence.all(q.HANG_TIMEOUT) or evidence.all(q.HANG_RANKS)
    if late := evidence.get(q.LATE_RANK):
        return _always_last(late)
    if not stuck and not behind and not missing:
        return None
    if not slow and any(map(evidence.all, OTHER_ANSWERS)):
        return None
    named = [f for f in missing if f.note != "silent"] or missing
    op = evidence.get(q.HANG_OP)
    because = [Reason.of(str(f.value), f) for f in [*slow[:2], *behind[:2]]]
    because += [Reason.of(f"{f.value} did not join", f) for f in named[:2]]
    if op:
        because.append(Reason.of(f"the others wait in {op.value}", op))
    acts = evidence.all(q.HANG_LAST_ACT)
    because += [Reason.of(f"last seen {f.value}: {f.note}", f) for f in acts[:1]]
    saving = any(f.value == SAVING for f in acts)
    known = named and named[0].note != "silent"
    ladder = ((slow, 0.88), (behind, 0.8), (known, 0.75), (named or acts, 0.6), (True, 0.5))
    confidence = next(sure for seen, sure in ladder if seen)
    if saving and not slow and not behind:
        confidence = 0.5  # a save that the others do not wait long enough for
    bare = not (slow or behind or named)
    return Finding(
        headline=_headline(slow, behind, named, op),
        confidence=confidence,
        because=tuple(because),
        against=(
            Reason("a rank in another collective, or one that died, leaves the same timeout: dumps of all ranks tell"),
        )
        if bare
        else (),
        scope=(slow or behind or named or stuck)[0].scope,
        fixes=(
            Fix("Look at that rank now: its stack, its node's disk, CPU and GPU clocks; drain the node if it is the machine.",
                worth="the job runs on", cost="minutes"),
            Fix("If the task is meant to take so long, wait for it with a longer timeout or outside the collective.",
                worth="no timeout", cost="a setting"),
        ),
        avoid="Do not suspect the network first: earlier collectives of the same group completed.",
        next=(STACKS, FLIGHT_RECORDER, NVIDIA_SMI),
        blocking=slow != [] or behind != [] or not saving,
    )  # fmt: skip


def _always_last(late: Fact) -> Finding:
    return Finding(
        headline=f"All ranks wait for rank {late.scope.rank}: it comes last again and again",
        confidence=0.85,
        because=(Reason.of(str(late.value), late),),
        scope=late.scope,
        fixes=(
            Fix("Look at what that rank does between collectives: its input, its host, its clocks; drain the node if it is the machine.",
                worth="the waiting of all others", cost="minutes"),
        ),
        avoid="Do not tune the collective: its time on the other ranks is waiting.",
        next=(STACKS, NVIDIA_SMI),
        explains=("exposed-communication",),
    )  # fmt: skip


def _headline(slow: list[Fact], behind: list[Fact], missing: list[Fact], op: Fact | None) -> str:
    where = f" in {op.value}" if op else ""
    if slow:
        return f"Some ranks are far slower: {slow[0].value}"
    if behind:
        return f"Some ranks stopped while others ran ahead: {behind[0].value}"
    if missing:
        return f"The job waits{where} for {missing[0].value}"
    return f"A rank never joined: the others wait{where} until their timeout"
