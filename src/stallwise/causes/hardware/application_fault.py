"""A program used an address it does not own, or a kernel raised an exception: software, not the card.

## What it means
Xid 13, 31, 32 and 43 report what a program did: an index out of bounds, a freed buffer, a kernel built for other
shapes, sometimes a bug in a library or the driver. The program's context dies; the GPU is fine. So it is with a program that
ends in an exception of its own code, in an argument it does not know, or in a segmentation fault beside which no driver
reports anything.

## Why it costs
The rank dies, and the others wait for it until their timeout.

## What else looks so
Uncorrectable memory errors (Xid 48, 63, 64, 94, 95) and a lost GPU (79) also end programs, and say so themselves. The
same code from one single GPU under many different programs points at that card after all. The line of Python where the
error shows is rarely where it happened, since launches are asynchronous.

## Fix
Run once with CUDA_LAUNCH_BLOCKING=1, or compute-sanitizer, to find the kernel; undo the last change of kernels,
libraries or driver. When many nodes fault alike, compare driver and library versions between good and bad nodes.

## How the gain is found
Not in seconds: the job runs again.
"""

from __future__ import annotations

from stallwise.doctor.findings.clue import Clue
from stallwise.doctor.findings.finding import Finding, Fix, Reason
from stallwise.doctor.findings.program_end import By, Ending, kind_of, line_of_own_code, next_after, program_ended
from stallwise.doctor.findings.rule import rule
from stallwise.evidence.capture import Capture
from stallwise.evidence.catalog import job
from stallwise.evidence.catalog.hardware import (
    DRIVER_VERSION,
    GPU_LOST,
    GPU_REMAP_FAILED,
    ILLEGAL_ACCESS,
    XID_APPLICATION,
    XID_BUS,
    XID_MEMORY,
    XID_NVLINK,
    XID_ORDER,
    XID_SAME_ADDRESS,
    XID_SPREAD,
)
from stallwise.evidence.event import Role
from stallwise.evidence.evidence import Evidence
from stallwise.evidence.fact import Fact

CLUES = (
    Clue((XID_APPLICATION,), lambda e: True, "decisive when seen", "the driver logged a fault that programs cause"),
    Clue((ILLEGAL_ACCESS,), lambda e: True, "strong when seen", "a program reports an illegal access"),
)
LONGEST = 160  # letters of a quoted message
SURE_OWN = 0.8  # an exception that names what the program did wrong; what led to it may be trouble that was not printed
FIRST_AID = (
    (("ModuleNotFoundError", "ImportError"), "Install the module into the environment that the job uses (which python; pip list)"),
    (("FileNotFoundError", "NotADirectoryError", "PermissionError"), "Create, mount or correct the path that it names"),
    (("SyntaxError", "IndentationError", "TabError"), "Correct the line that it names (python -m py_compile FILE finds all)"),
)  # fmt: skip
SANITIZER = Capture(
    "the kernel and line that used the bad address",
    "CUDA_LAUNCH_BLOCKING=1 compute-sanitizer python train.py",
    "a slow run",
)


@rule()
def application_fault(evidence: Evidence) -> Finding | None:
    """Codes that programs cause, with nothing wrong with the card."""
    codes, words = evidence.all(XID_APPLICATION), evidence.all(ILLEGAL_ACCESS)
    hardware = next((found for q in (XID_BUS, XID_MEMORY, XID_NVLINK, GPU_LOST) if (found := evidence.all(q))), [])
    hardware = hardware or [f for f in evidence.all(GPU_REMAP_FAILED) if f.number > 0]
    if not codes and (not words or hardware):
        return None if hardware else _own_end(evidence) or _crashed_in_kernel_log(evidence)
    because = [Reason.of(str(f.value), f) for f in codes[:3]] + [Reason.of(str(f.value), f) for f in words[:2]]
    because += [Reason.of(str(f.value), f) for f in evidence.all(XID_ORDER)]
    because += _where(evidence, codes, words)
    spread = evidence.get(XID_SPREAD)
    against = []
    if spread and spread.number > 1:
        because.append(Reason.of(f"{spread} GPUs fault alike: one program or driver, not {spread} bad cards", spread))
    drivers = {str(f.value) for f in evidence.all(DRIVER_VERSION)}
    same = evidence.get(XID_SAME_ADDRESS)
    if same:
        because.append(Reason.of("different processes of a machine fault at the same address: driver or library", same))
    if hardware:
        against.append(Reason.of("the driver also logged hardware errors", *hardware[:1]))
    return Finding(
        headline="A driver or library bug touches addresses that are not mapped"
        if same
        else "A program used a bad address: software, not the card",
        summary=str((codes or words)[0].value),
        confidence=0.45 if hardware else 0.93 if codes else 0.75,
        because=tuple(because),
        against=tuple(against),
        scope=(codes or words)[0].scope,
        fixes=_fixes(bool(same) or len(drivers) > 1, drivers),
        avoid="Do not swap the GPU: it did what it was told.",
        next=(SANITIZER,),
        explains=("rank-died-first",),
        blocking=True,
    )


def _own_end(evidence: Evidence) -> Finding | None:
    """The log ends in an error of the program, and nothing else in it is out of order."""
    ending = program_ended(evidence)
    if ending is None:
        return None
    at = line_of_own_code(evidence, ending)
    crash = ending.by is By.CRASH
    return Finding(
        headline=f"The program {'crashed in native code' if crash else 'ended in an error of its own'}: {ending.text[:LONGEST]}",
        summary=f"It was reached from your code at {at.value}." if at else "",
        confidence=SURE_OWN,
        because=(
            Reason(
                f"the log ends in it, and no GPU, driver, memory or network error stands beside it: {ending.text}",
                (ending.source,),
            ),
            *([Reason.of(f"your code: {at.value}", at)] if at else ()),
        ),
        fixes=(Fix(_first_aid(ending, at), worth="the job runs again"),),
        avoid="Do not look for a slow or broken GPU: the program ended before that could matter.",
        next=next_after(ending, evidence),
        explains=("rank-died-first",),
        blocking=True,
        last_resort=True,
    )


def _first_aid(ending: Ending, at: Fact | None) -> str:
    if ending.by is By.CRASH:
        return "Run once with PYTHONFAULTHANDLER=1, or under gdb (run, then bt), to see where it crashed."
    kind = kind_of(ending.text)
    place = f" at {at.value}" if at else ""
    for kinds, action in FIRST_AID:
        if kind in kinds:
            return f"{action}{place}."
    return f"Correct what the message says{place}."


def _crashed_in_kernel_log(evidence: Evidence) -> Finding | None:
    """The kernel reports segmentation faults of a program, and no fault of a GPU, of memory or of a bus."""
    logs = {t.source.file for t in evidence.table("kernel.log")}
    crashes = [e for e in evidence.events_of("process-crashed") if e.source.file in logs]
    others = [e for e in evidence.events if e.role is Role.ROOT and e.kind != "process-crashed"]
    if not crashes or others:
        return None
    first = crashes[0]
    who, library = first.word("program"), first.word("library")
    times = max(len(crashes), first.times)
    where = f"in {library}" if library else "in native code"
    return Finding(
        headline=f"{who or 'A program'} crashed {where}"
        + (f", {times} times" if times > 1 else "")
        + ": a segmentation fault of the program",
        summary="The kernel log holds no Xid, no lost GPU, no memory error and no process killed for memory.",
        confidence=SURE_OWN,
        because=tuple(Reason(" ".join(e.text.split()), (e.source,)) for e in crashes[:3]),
        fixes=(
            Fix(
                "Get the native stack: coredumpctl gdb, or gdb -ex run -ex bt --args PROGRAM.",
                worth="the place of the fault",
            ),
        ),
        avoid="Do not swap the GPU: its driver reports nothing.",
        blocking=True,
        last_resort=True,
    )


def _fixes(driver: bool, versions: set[str]) -> tuple[Fix, ...]:
    find = Fix(
        "Find the kernel: CUDA_LAUNCH_BLOCKING=1 or compute-sanitizer, then fix or undo the change that brought it.",
        worth="the job runs again",
        cost="one slow run",
    )
    if not driver:
        return (find,)
    listed = f" ({', '.join(sorted(versions))})" if versions else ""
    return (
        Fix(
            f"Compare driver versions of good and bad nodes{listed} and go back to the good one.",
            worth="all nodes",
            cost="a reboot",
        ),
        find,
    )


def _where(evidence: Evidence, codes: list[Fact], words: list[Fact]) -> list[Reason]:
    """What a kernel's own assertion says, and the user's line from which it was reached."""
    files = {f.source.file for f in (*codes, *words)}
    found = []
    for event in evidence.events_of("device-assert")[:1]:
        times = f"{event.times:,} threads: " if event.times > 1 else ""
        found.append(Reason(f"{times}{event.word('place').rsplit('/', 1)[-1]}: {event.word('what')}", (event.source,)))
    at = [f for f in evidence.all(job.RAISED_AT) if f.source.file in files]
    return found + [
        Reason.of(f"reached from your code at {f.value} (kernels run later than their launch)", f) for f in at[-1:]
    ]
