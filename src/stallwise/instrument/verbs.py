"""The verbs of `import stallwise`. Off, each is one test and a shared do-nothing object."""

from __future__ import annotations

import atexit
import os
import sys
from typing import Any, ContextManager, Iterable, Iterator, Optional, TypeVar

from stallwise.instrument import schema
from stallwise.instrument.recorder import Recorder, Span, rank_and_world
from stallwise.instrument.writer import Writer

T = TypeVar("T")


class _Off:
    """What a span is when nothing records: in and out without a Python frame, in half the time of two methods."""

    __slots__ = ()
    __enter__ = "".isascii  # any C function of no arguments will do
    __exit__ = "".format  # takes what `with` hands over and returns an empty string: exceptions pass


_OFF: Any = _Off()
_recorder: Optional[Recorder] = None


def start(folder: str = "stallwise_run", *, auto: bool = True, watchdog: bool = True) -> None:
    """Starts recording into this rank's own file in `folder`. Twice is once. Never raises."""
    global _recorder
    if _recorder is not None:
        return
    try:
        rank, world = rank_and_world()
        path = os.path.join(folder, schema.file_name(rank))
        _recorder = Recorder(Writer(path), rank=rank, world=world)
        atexit.register(_at_exit)
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=_forget)
        if watchdog:
            from stallwise.instrument.watchdog import Watchdog

            Watchdog(_recorder).start()
        if auto:
            from stallwise.instrument.stages import install

            install(_recorder)
    except Exception as error:
        _recorder = None
        sys.stderr.write("stallwise: not recording (%s: %s); the job goes on\n" % (type(error).__name__, error))


def stop(why: str = "exit") -> None:
    """Ends the recording; the file is complete afterwards."""
    global _recorder
    recorder, _recorder = _recorder, None
    if recorder is not None:
        try:
            recorder.close(why)
        except Exception:
            pass


def recording() -> Optional[Recorder]:
    """The recorder, or None when off."""
    return _recorder


def span(name: str) -> ContextManager[Any]:
    """Times a range of the step: `with stallwise.span("forward"):`."""
    recorder = _recorder
    return _OFF if recorder is None else Span(recorder, name)


def step() -> None:
    """Call once at the end of every step; from the first call on, these are the steps' borders."""
    recorder = _recorder
    if recorder is not None:
        recorder.borders_from_optimizer = False
        recorder.step()


def steps(loader: Iterable[T]) -> Iterator[T]:
    """Wraps a loader: each pass of the loop is a step, and the wait for each batch is timed."""
    recorder = _recorder
    if recorder is not None:
        recorder.borders_from_optimizer = False
    iterator = iter(loader)
    while True:
        with span(schema.BATCH_WAIT):
            try:
                batch = next(iterator)
            except StopIteration:
                return
        yield batch
        step()


def mark(name: str, note: str = "") -> None:
    """Remembers an instant: an epoch's start, a checkpoint, a change of learning rate."""
    recorder = _recorder
    if recorder is not None:
        recorder.mark(name, note)


def gauge(name: str, value: Any) -> None:
    """Records a number with the current step. A tensor is refused: reading it would be a sync."""
    recorder = _recorder
    if recorder is not None and isinstance(value, (int, float)):
        recorder.gauge(name, value)


def _forget() -> None:
    """In a forked child the parent's recording is not ours."""
    global _recorder
    _recorder = None


def _at_exit() -> None:
    why = "exit"
    if getattr(sys, "last_type", None) is not None:
        why = "exception"
    stop(why)
