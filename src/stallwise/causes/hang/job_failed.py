"""The job raised, aborted or was killed: it did not end by itself.

## What it means
The command that was recorded left with an exit code other than 0, or a signal ended it. Whatever else its record shows, this
comes first.

## Why it costs
All work since the last checkpoint is lost, and the ranks of the same job wait for it until their timeout.

## What else looks so
A program that uses its exit code to say something else (tests failed, nothing to do), and a job that a batch system ended at
its time limit (SIGTERM, then SIGKILL).

## Fix
Read its last words. Signal 9 comes most often from the kernel's out-of-memory killer: fewer loader workers, less prefetch,
a larger memory limit. Signals 6 and 11 come from native code: run once with PYTHONFAULTHANDLER=1 to see the Python line.

## How the gain is found
Not in seconds: the job runs to its end.
"""

from __future__ import annotations

from stallwise.doctor.findings.clue import Clue
from stallwise.doctor.findings.finding import Finding, Fix, Reason
from stallwise.doctor.findings.rule import rule
from stallwise.evidence.capture import Capture
from stallwise.evidence.catalog import job, memory
from stallwise.evidence.evidence import Evidence
from stallwise.evidence.fact import Fact

CLUES = (
    Clue((job.FAILED_WRITE,), lambda e: True, "strong when seen", "a file could not be written"),
    Clue((job.EXIT_CODE,), lambda e: e.value(job.EXIT_CODE, 0.0) != 0, "decisive, needed", "the job left with a code"),
)
HOST_MEMORY = Capture(
    "what of the host's memory the job takes over time",
    "pidstat -r -C python 5 > memory.txt; cat /sys/fs/cgroup/memory.max /sys/fs/cgroup/memory.peak",
    "free; while it runs",
)
KILL, SIGNALLED = 137.0, 128.0
KILLER_NAMED = 0.75  # that it was killed is certain; which process of the job, and why it grew, is not
NOT_WRITTEN = 0.8  # a full disk ends a job for sure; another write may have ended before this one
SURE = 0.97  # an exit code is no matter of opinion; that it stands for a failure nearly never is
NATIVE = ("SIGSEGV", "SIGABRT", "SIGBUS", "SIGILL", "SIGFPE")
ASKED = ("SIGTERM", "SIGINT", "SIGHUP", "SIGUSR1", "SIGUSR2")


@rule()
def job_failed(evidence: Evidence) -> Finding | None:
    """Any code but 0, or the word of the kernel or the container's keeper that it killed."""
    code = evidence.get(job.EXIT_CODE)
    if code is None:
        return _killed_for_memory(evidence) or _could_not_write(evidence)
    if code.number == 0:
        return None
    name, words, oom = (evidence.get(q) for q in (job.SIGNAL, job.LAST_WORDS, job.KILLED_FOR_MEMORY))
    because = [Reason.of(f"exit code {code.number:.0f}" + (f", {name.value}" if name else ""), code)]
    if words:
        because.append(Reason.of(f"its last words: {words.value}", words))
    if oom:
        because.append(Reason.of(str(oom.value), oom))
    return Finding(
        headline=_headline(code, name, words),
        summary=_summary(code, name, oom),
        confidence=SURE,
        because=tuple(because),
        fixes=_fixes(code, name),
        blocking=True,
        last_resort=True,
    )


def _killed_for_memory(evidence: Evidence) -> Finding | None:
    killed = evidence.get(memory.HOST_KILLED)
    if killed is None or not killed.number:
        return None
    return Finding(
        headline="The job was killed for lack of host memory",
        summary="The kernel or the container's keeper ended a process; GPU memory has no part in it.",
        confidence=KILLER_NAMED,
        because=(
            Reason.of("the log says so in the killer's own words", killed),
            *(Reason(e.text[:200], (e.source,)) for e in evidence.events_of("process-killed")[-2:]),
        ),
        next=(HOST_MEMORY,),
        fixes=(
            Fix(
                "Lower the host memory that the job takes (loader workers, prefetch, caches) or raise its limit.",
                worth="the job runs to its end",
                cost="one more run",
            ),
        ),
        blocking=True,
    )


def _could_not_write(evidence: Evidence) -> Finding | None:
    last = next(reversed(evidence.all(job.FAILED_WRITE)), None)
    if last is None:
        return None
    return Finding(
        headline="The job could not write a file",
        summary=str(last.value)[:200],
        confidence=NOT_WRITTEN if last.note else NOT_WRITTEN / 2,  # what ends the log ended the job
        because=(Reason.of(str(last.value), last),),
        fixes=(
            Fix(
                "Look at the place it writes to: space (`df -h`), quota, rights, and whether the folder exists.",
                worth="the job goes on from its last checkpoint",
                cost="seconds",
            ),
            Fix(
                "Keep fewer checkpoints, and test a write before the first epoch.",
                worth="no lost epoch",
                cost="a setting",
            ),
        ),
        blocking=True,
        last_resort=True,
    )


def _headline(code: Fact, name: Fact | None, words: Fact | None) -> str:
    if name is not None:
        return f"The job was killed by signal {code.number - SIGNALLED:.0f} ({name.value})"
    if words is not None:
        return f"The job failed with code {code.number:.0f}: {words.value}"
    return f"The job failed with code {code.number:.0f} and said nothing"


def _summary(code: Fact, name: Fact | None, oom: Fact | None) -> str:
    if code.number == KILL:
        oom_note = f"; {oom.value}" if oom else "; nothing here confirms it: look at `dmesg | grep -i oom`"
        return f"Most often this is the kernel's out-of-memory killer{oom_note}."
    if name is not None and name.value in NATIVE:
        return "Native code (a library, an extension, the driver) ended the process."
    if name is not None and name.value in ASKED:
        return "Somebody asked it to end: a person, a time limit or a scheduler."
    return "It ended with an error of its own."


def _fixes(code: Fact, name: Fact | None) -> tuple[Fix, ...]:
    if code.number == KILL:
        action = "Lower the host memory that the job takes (loader workers, prefetch, caches) or raise its limit."
        return (Fix(action, worth="the job runs to its end", cost="one more run"),)
    if name is not None and name.value in NATIVE:
        action = "Run once with PYTHONFAULTHANDLER=1: it prints the Python line at which native code died."
        return (Fix(action, worth="the place of the fault", cost="one more run"),)
    return (Fix("Start from the job's last words.", worth="the job runs to its end", cost="reading"),)
