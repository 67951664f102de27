"""How a program ended, where its log ends in an exception: the error first, the user's line, the ranks, what came before.

Never a proof of anything well: it says whose matter the end is, and what to look at next. Refuted by: nothing, as it always lacks something.
"""

from __future__ import annotations

from stallwise.doctor.findings.finding import Reason
from stallwise.doctor.findings.program_end import (
    WHOLE_LOG,
    By,
    ending_of,
    line_of_own_code,
    next_after,
    open_tracebacks,
    program_ended,
    written_to,
)
from stallwise.doctor.findings.proof import PROGRAM_END, Proof
from stallwise.evidence.catalog import hang, job
from stallwise.evidence.event import Role
from stallwise.evidence.evidence import Evidence
from stallwise.evidence.fact import Fact

MOST_BEFORE = 4
MISSING = {
    By.PROGRAM: "what led to it is not in this log.",
    By.CRASH: "where in native code it crashed is not in this log.",
    By.OUTSIDE: "it was stopped from outside; whether it was stuck, too large or only too long is not in this log.",
    By.EXIT: "why it left with that code is not in this log.",
    By.OTHER: "what led to it is not in this log.",
}


def program_end(evidence: Evidence) -> Proof | None:
    """What it ended in and from where."""
    ending = ending_of(evidence)
    if ending is None:
        return _cut(evidence)
    raised, own = ending.raised, program_ended(evidence) is not None
    at = line_of_own_code(evidence, ending)
    summary = f"{ending.text} ({ending.source.place})"
    rows = [Reason.of(f"your code: {at.value}", at)] if at else []
    if raised is not None:
        rows.append(Reason.of(_spread(evidence, raised), raised))
    before = [f for f in evidence.all(job.RAISED) if f is not raised]
    rows += [
        Reason.of(f"before it: {f.value}" if not f.note.startswith("reports") else f"its launcher: {f.value}", f)
        for f in before[-MOST_BEFORE:]
    ]
    rows += [Reason(" ".join(e.text.split()), (e.source,)) for e in evidence.events_of("job-state")[-1:]]
    rows += [Reason(f"its last words elsewhere: {name}", (source,)) for name, source in written_to(evidence)]
    return Proof(
        of=PROGRAM_END,
        says=summary,
        because=(Reason(summary, (ending.source,)), *(r for r in rows if r.text)),
        lacks="it is the program's own error, no matter of a GPU." if own else MISSING[ending.by],
        objects=True,
        next=next_after(ending, evidence),
        covers_run=False,
    )


def _cut(evidence: Evidence) -> Proof | None:
    """A traceback whose end is missing."""
    explained = {e.source.file for e in evidence.events if e.role is Role.ROOT}
    opened = [e for e in open_tracebacks(evidence.events) if e.source.file not in explained]
    if not opened or evidence.all(job.RAISED):
        return None
    summary = "a traceback that is cut off before its error"
    reasons = (Reason(summary, (opened[-1].source,)),)
    lacks = "what was raised is not in this log."
    return Proof(PROGRAM_END, summary, reasons, lacks=lacks, objects=True, next=(WHOLE_LOG,), covers_run=False)


def _spread(evidence: Evidence, raised: Fact) -> str:
    """All ranks or one."""
    if raised.scope.rank is not None:
        return f"on rank {raised.scope.rank} alone"
    if raised.samples > 1:
        return f"{raised.samples} times or on as many ranks"
    world = max((int(f.number) for f in evidence.all(hang.HANG_WORLD)), default=0)
    return f"once, of {world} ranks" if world > 1 else ""
