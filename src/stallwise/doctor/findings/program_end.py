"""What ended a program: the last error of its log, and whether it is plainly the program's own."""

from __future__ import annotations

import re
from collections.abc import Iterable
from enum import StrEnum
from typing import NamedTuple

from stallwise.evidence.capture import Capture
from stallwise.evidence.catalog import job
from stallwise.evidence.event import Event, Role
from stallwise.evidence.evidence import Evidence
from stallwise.evidence.fact import Fact, Source

ENDS = "ends the log"
STOPPED = ("KeyboardInterrupt", "SystemExit")
# Exceptions of CPython that name what a program did wrong, or did not find. The others (RuntimeError, ValueError, MemoryError,
# those of connections and timeouts) are raised for trouble of every kind.
OWN = frozenset(
    "ArithmeticError AttributeError FileExistsError FileNotFoundError ImportError IndentationError IndexError IsADirectoryError "
    "JSONDecodeError KeyError LookupError ModuleNotFoundError NameError NotADirectoryError NotImplementedError PermissionError "
    "RecursionError StopIteration SyntaxError TabError TypeError UnboundLocalError UnicodeDecodeError ZeroDivisionError "
    "GatedRepoError HTTPError KeyboardInterrupt ValidationError ArgumentError".split()
)
SHUTDOWN = "shutdown-begins"
REFUSED = "request-refused"  # an engine's word to a client, however it raises it
TRACEBACK = "traceback"  # of Python, which ends in what was raised
_FIRST = re.compile(r"\d+")
_EXCEPTION = re.compile(r"(?:[\w.]{1,120}(?:Error|Exception)\b|what\(\))")  # it may tell of a GPU, memory or a network


AROUND = 8  # lines of code on both sides
WHO_STOPPED = Capture(
    "who stopped it: the scheduler, a supervisor or the out-of-memory killer",
    "sacct -j JOBID -o JobID,State,ExitCode,Elapsed; journalctl -e; sudo dmesg -T | grep -iE 'oom|killed process'",
    "free",
    minutes=2,
)
LIMITS = Capture(
    "how long it ran, its limit and its state",
    "sacct -j JOBID -o JobID,Elapsed,Timelimit,State,ExitCode",
    "free",
    minutes=1,
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


class By(StrEnum):
    """Whose matter an end is."""

    PROGRAM = "program"  # its own error
    CRASH = "crash"  # of native code
    OUTSIDE = "outside"  # a person, a scheduler, the kernel
    EXIT = "exit"  # an exit code without its reason
    OTHER = "other"  # a message with a meaning of its own, which its causes judge


BY = {
    "uncaught-error": By.PROGRAM, "usage-error": By.PROGRAM, "command-refused": By.PROGRAM, "import-failed": By.PROGRAM,
    "process-crashed": By.CRASH,
    "job-stopped": By.OUTSIDE, "process-killed": By.OUTSIDE, "job-preempted": By.OUTSIDE, "stopped-by-hand": By.OUTSIDE,
    "process-exit": By.EXIT,
}  # fmt: skip
# Of the errors at the end of a log: what says most of why comes before what only says that it is over.
SAYS_LESS = (By.OUTSIDE, By.PROGRAM, By.OTHER, By.CRASH, By.EXIT)


class Ending(NamedTuple):
    """The error that ended a log, as it is printed."""

    text: str
    source: Source
    by: By
    kind: str = ""  # of its message
    raised: Fact | None = None  # where it is an exception of Python


def ending_of(evidence: Evidence) -> Ending | None:
    """The exception that ended a log, unless somebody stopped it; else its last error of known meaning."""
    kernel = {t.source.file for t in evidence.table("kernel.log")}  # of a machine the last line is no end
    ends = [
        Ending(e.text, e.source, BY.get(e.kind, By.OTHER), e.kind) for e in evidence.events
        if e.ends_log and e.level == "error" and e.source.file not in kernel and (e.role is Role.ROOT or BY.get(e.kind) is By.EXIT)
    ]  # fmt: skip
    if (raised := ended_in(evidence)) is not None:
        words = str(raised.value)
        ends = [e for e in ends if e.by is By.OUTSIDE] if stopped(words) else []
        ends = ends or [Ending(words, raised.source, By.OUTSIDE if stopped(words) else By.PROGRAM, raised=raised)]
    return min(reversed(ends), key=lambda e: SAYS_LESS.index(e.by), default=None)


def ended_in(evidence: Evidence) -> Fact | None:
    """The last exception of a log that ends in one; what a parent reports of its child is not it."""
    return next((f for f in reversed(evidence.all(job.RAISED)) if f.note == ENDS), None)


def before_shutdown(events: Iterable[Event]) -> list[Event]:
    """The messages of each file up to where its program was told to stop: what is raised while it is taken down is no trouble."""
    found = list(events)
    stops: dict[str, int] = {}
    for event in found:
        if event.kind == SHUTDOWN:
            stops.setdefault(event.source.file, _line(event))
    return [e for e in found if e.source.file not in stops or _line(e) < stops[e.source.file]]


def open_tracebacks(events: Iterable[Event]) -> list[Event]:
    """Tracebacks whose end is not known: none that a program raised while it was taken down, or to answer a client."""
    found = before_shutdown(events)
    answered = {e.source.file: _line(e) for e in found if e.kind == REFUSED}
    return [e for e in found if e.kind == TRACEBACK and _line(e) > answered.get(e.source.file, 0)]


def _line(event: Event) -> int:
    number = _FIRST.search(event.source.where)
    return int(number[0]) if number else 0


def kind_of(words: str) -> str:
    """ "IndexError"."""
    return words.partition(":")[0].rsplit(".", 1)[-1].strip()


def own_error(ending: Ending | None) -> bool:
    """Whether it is an exception of the program's own, and no trouble of a GPU, of memory or of a network."""
    if ending is None:
        return False
    kind = kind_of(ending.text)
    return kind in OWN or (kind in ("OSError", "EnvironmentError") and "[Errno" not in ending.text)


# Messages that say no more than that a program ended; a crash or a kill may come of full memory.
NO_MORE = frozenset(kind for kind, by in BY.items() if by in (By.PROGRAM, By.EXIT)) | {
    TRACEBACK,
    "job-stopped",
    "stopped-by-hand",
}
# What readers of logs call a text that holds a program's own lines and nothing else.
READ_WHOLE = frozenset(("Python tracebacks", "messages", "rank progress", "engine start-up", "out-of-memory error"))


def says_all(evidence: Evidence) -> bool:
    """Whether the end is all that is known: no message of another meaning stands in the log, and its other words are code."""
    if evidence.all(job.RAISED) and not ended_in(evidence):
        return False  # the program went on
    kinds = _kinds(evidence)
    return bool(kinds) and kinds <= NO_MORE and set(evidence.formats) <= READ_WHOLE


def _kinds(evidence: Evidence) -> set[str]:
    return {e.kind for e in evidence.events if e.role in (Role.ROOT, Role.CASCADE) or e.kind == TRACEBACK}


def program_ended(evidence: Evidence) -> Ending | None:
    """An end that is plainly the program's own matter: an exception of its code, or a crash beside which nothing else is reported."""
    ending = ending_of(evidence)
    if ending is None or ending.by not in (By.PROGRAM, By.CRASH):
        return None
    if own_error(ending):
        return ending
    plain = not _EXCEPTION.match(ending.text)
    return ending if plain and _kinds(evidence) <= NO_MORE | {"process-crashed"} and not evidence.composed else None


def line_of_own_code(evidence: Evidence, ending: Ending) -> Fact | None:
    """The innermost line of the user's own code on the way to the exception that ended the program."""
    if ending.raised is None:
        return None
    return next((f for f in reversed(evidence.all(job.RAISED_AT)) if f.note == ending.text), None)


def written_to(evidence: Evidence) -> list[tuple[str, Source]]:
    """Where the job's own report says that its errors stand."""
    return [(e.word("file"), e.source) for e in evidence.events_of("output-elsewhere")[-1:]]


def next_after(ending: Ending, evidence: Evidence) -> tuple[Capture, ...]:
    """What shows more of it: who stopped it, the native stack, the user's line, the place or the access that it lacks."""
    at = line_of_own_code(evidence, ending)
    text = " ".join(str(f.value) for f in evidence.all(job.RAISED))
    asks: list[Capture] = []
    if ending.by is By.OUTSIDE:
        return (LIMITS if ending.kind == "job-stopped" else WHO_STOPPED,)
    if ending.by is By.EXIT:
        elsewhere = [
            Capture("the file that holds its errors", f"less {name}", "free", minutes=1)
            for name, _ in written_to(evidence)
        ]
        return (*elsewhere, WHOLE_LOG)
    if ending.by is By.CRASH or ending.text.startswith("Fatal Python error"):
        asks.append(NATIVE)
    if _REFUSED.search(text):
        asks.append(ACCESS)
    kind = kind_of(ending.text)
    if kind in ("ModuleNotFoundError", "ImportError"):
        asks.append(PACKAGES)
    if kind in ("FileNotFoundError", "NotADirectoryError", "PermissionError") and (path := _PATH.search(ending.text)):
        asks.append(Capture("the place that it wants", f"ls -ld '{path[1]}'", "free", minutes=1))
    if at and (place := _PLACE.match(str(at.value))):
        line = int(place["line"])
        code = f"sed -n '{max(1, line - AROUND)},{line + AROUND}p' {place['file']}"
        asks.append(Capture(f"your code around line {line}", code, "free", minutes=1))
    return tuple(asks) or (WHOLE_LOG,)


def stopped(words: str) -> bool:
    """Whether somebody ended it from outside."""
    return words.partition(":")[0].partition(" ")[0].rsplit(".", 1)[-1] in STOPPED
