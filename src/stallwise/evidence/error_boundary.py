"""One part that fails (a reader, a measure, a rule) becomes a note; everybody else's answers stay.

STALLWISE_DEBUG=1 lets the failure through, for those who want to see where it is.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import TypeVar

from stallwise.errors import StallwiseError
from stallwise.evidence.fact import Note, Source
from stallwise.evidence.limits import OutOfTime, at_most_of_work, out_of_time

T = TypeVar("T")


def debugging() -> bool:
    """Whether failures of ours are to be seen whole."""
    return bool(os.environ.get("STALLWISE_DEBUG"))


def failure_of(who: str, error: BaseException, seconds: float = 0.0) -> StallwiseError:
    """What to say of a part that failed; raises it again for those who debug."""
    if isinstance(error, StallwiseError):
        return error
    if isinstance(error, OutOfTime) or out_of_time():
        limit = f" its limit of {seconds:.0f} s" if seconds else " its limit"
        return StallwiseError(f"{who} took longer than{limit} and was stopped", hint="raise --max-seconds")
    if isinstance(error, MemoryError):
        return StallwiseError(f"{who} needs more memory than there is", hint="use a larger machine")
    if debugging():
        raise error
    return StallwiseError(
        f"{who} failed ({type(error).__name__}: {str(error)[:120]})",
        hint="set STALLWISE_DEBUG=1 for the traceback and file it with the input",
    )


def kept(items: Iterable[T], who: str, source: Source) -> Iterator[T | Note]:
    """Everything up to a failure, then a note on it."""
    try:
        yield from items
    except Exception as error:
        yield Note(failure_of(who, error).problem, source, lost=True)


def tried(act: Iterable[T], who: str, source: Source, seconds: float) -> list[T | Note]:
    """All of it within so much work, or what came before the failure with a note on it."""
    found: list[T | Note] = []
    try:
        with at_most_of_work(seconds):
            found.extend(kept(act, who, source))
    except OutOfTime as error:
        found.append(Note(failure_of(who, error, seconds).problem, source, lost=True))
    return found
