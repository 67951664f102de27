"""How a program ended, where its log ends in an exception: the error first, the user's line, the ranks, what came before.

Never a proof of anything well: it says whose matter the end is, and what to look at next. Refuted by: nothing, as it always lacks something.
"""

from __future__ import annotations

import re

from stallwise.doctor.findings.finding import Reason
from stallwise.doctor.findings.program_end import ended_in, kind_of, open_tracebacks, own_error, stopped
from stallwise.doctor.findings.proof import Proof
from stallwise.evidence.capture import Capture
from stallwise.evidence.catalog import hang, job
from stallwise.evidence.evidence import Evidence
from stallwise.evidence.fact import Fact

AROUND = 8  # lines of code on both sides
MOST_BEFORE = 4
WHO_STOPPED = Capture(
    "who stopped it: the scheduler, a supervisor or the out-of-memory killer",
    "sacct -j JOBID -o JobID,State,ExitCode,Elapsed; journalctl -e; sudo dmesg -T | grep -iE 'oom|killed process'",
    "free",
    minutes=2,
)
ACCESS = Capture(
    "access to that model or dataset",
    "hf auth login   (huggingface-cli login), and accept its terms on its page",
    "free",
    minutes=3,
)
WHOLE_LOG = Capture("the log to its last line", "python train.py 2>&1 | tee train.log", "one more run", minutes=5)
NATIVE = Capture(
    "the native stack of the crash",
    "coredumpctl gdb   (then: bt), or gdb -ex run -ex bt --args python train.py",
    "one more run",
    minutes=10,
)
PACKAGES = Capture("which packages are installed", "pip list > packages.txt; which python", "free", minutes=1)
_REFUSED = re.compile(r"gated repo|\b40[13]\b|unauthori[sz]ed|forbidden|access token", re.IGNORECASE)
_PATH = re.compile(r"'([^'\n]{1,300})'")
_PLACE = re.compile(r"^(?P<file>.+):(?P<line>\d+) in ")


def program_end(evidence: Evidence) -> Proof | None:
    """What it ended in and from where."""
    raised = ended_in(evidence)
    if raised is None:
        return _cut(evidence)
    at = next((f for f in reversed(evidence.all(job.RAISED_AT)) if f.note == str(raised.value)), None)
    by, lacks = "ended by", "what led to it is not in this log."
    if stopped(str(raised.value)):
        by, lacks = "stopped from outside", "who stopped it is not in this log."
    elif own_error(raised):
        by, lacks = "ended by its own error", "that is no matter of a GPU."
    summary = f"{by}: {raised.value}"
    rows = [Reason.of(f"last: {raised.value}", raised)]
    if at:
        rows.append(Reason.of(f"your code: {at.value}", at))
    rows.append(Reason.of(_spread(evidence, raised), raised))
    before = [f for f in evidence.all(job.RAISED) if f is not raised]
    rows += [
        Reason.of(f"before it: {f.value}" if not f.note.startswith("reports") else f"its launcher: {f.value}", f)
        for f in before[-MOST_BEFORE:]
    ]
    return Proof(
        of="end of the program",
        says=summary,
        because=tuple(r for r in rows if r.text),
        lacks=lacks,
        objects=True,
        next=_next(raised, at, evidence),
        covers_run=False,
    )


def _cut(evidence: Evidence) -> Proof | None:
    """A traceback whose end is missing."""
    opened = open_tracebacks(evidence.events)
    if not opened or evidence.all(job.RAISED):
        return None
    summary = "a traceback that is cut off before its error"
    reasons = (Reason(summary, (opened[-1].source,)),)
    lacks = "what was raised is not in this log."
    return Proof("end of the program", summary, reasons, lacks=lacks, objects=True, next=(WHOLE_LOG,), covers_run=False)


def _spread(evidence: Evidence, raised: Fact) -> str:
    """All ranks or one."""
    if raised.scope.rank is not None:
        return f"on rank {raised.scope.rank} alone"
    if raised.samples > 1:
        return f"{raised.samples} times or on as many ranks"
    world = max((int(f.number) for f in evidence.all(hang.HANG_WORLD)), default=0)
    return f"once, of {world} ranks" if world > 1 else ""


def _next(raised: Fact, at: Fact | None, evidence: Evidence) -> tuple[Capture, ...]:
    text = " ".join(str(f.value) for f in evidence.all(job.RAISED))
    asks: list[Capture] = []
    if stopped(str(raised.value)):
        return (WHO_STOPPED,)
    if str(raised.value).startswith("Fatal Python error"):
        asks.append(NATIVE)
    if _REFUSED.search(text):
        asks.append(ACCESS)
    if kind_of(raised) in ("ModuleNotFoundError", "ImportError"):
        asks.append(PACKAGES)
    if kind_of(raised) in ("FileNotFoundError", "NotADirectoryError", "PermissionError") and (
        path := _PATH.search(str(raised.value))
    ):
        asks.append(Capture("the place that it wants", f"ls -ld '{path[1]}'", "free", minutes=1))
    if at and (place := _PLACE.match(str(at.value))):
        line = int(place["line"])
        code = f"sed -n '{max(1, line - AROUND)},{line + AROUND}p' {place['file']}"
        asks.append(Capture(f"your code around line {line}", code, "free", minutes=1))
    return tuple(asks)
