"""The exception that ended a program, and whether it is plainly the program's own."""

from __future__ import annotations

import re
from collections.abc import Iterable

from stallwise.evidence.catalog import job
from stallwise.evidence.event import Event, Role
from stallwise.evidence.evidence import Evidence
from stallwise.evidence.fact import Fact

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


def ended_in(evidence: Evidence) -> Fact | None:
    """The last exception of a log that ends in one; what a parent reports of its child is not it."""
    return next((f for f in reversed(evidence.all(job.RAISED)) if f.note == ENDS), None)


SHUTDOWN = "shutdown-begins"
REFUSED = "request-refused"  # an engine's word to a client, however it raises it
TRACEBACK = "traceback"  # of Python, which ends in what was raised
_FIRST = re.compile(r"\d+")


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


def kind_of(raised: Fact) -> str:
    """ "IndexError"."""
    return str(raised.value).partition(":")[0].rsplit(".", 1)[-1].strip()


def own_error(raised: Fact | None) -> bool:
    """Whether it is the program's own, and no trouble of a GPU, of memory or of a network."""
    if raised is None:
        return False
    system = "[Errno" in str(raised.value)
    return kind_of(raised) in OWN or (kind_of(raised) in ("OSError", "EnvironmentError") and not system)


# Messages that say no more than that an exception was raised.
NO_MORE = frozenset(("uncaught-error", "traceback", "stopped-by-hand"))


def says_all(evidence: Evidence) -> bool:
    """Whether the exception is all that is known: no message of another meaning stands in the log, and its other words are code."""
    if evidence.all(job.RAISED) and not ended_in(evidence):
        return False  # the program went on
    kinds = {e.kind for e in evidence.events if e.role in (Role.ROOT, Role.CASCADE)} | {
        e.kind for e in evidence.events if e.kind == "traceback"
    }
    return bool(kinds) and kinds <= NO_MORE and set(evidence.formats) <= READ_WHOLE


READ_WHOLE = {"Python tracebacks", "messages", "rank progress", "engine start-up", "out-of-memory error"}


def stopped(words: str) -> bool:
    """Whether somebody ended it from outside."""
    return words.partition(":")[0].partition(" ")[0].rsplit(".", 1)[-1] in STOPPED
