"""The verbs of `import stallwise`. Off, each is one test and a shared do-nothing object."""

from __future__ import annotations

import atexit
import functools
import itertools
import os
import sys
from typing import Any, Callable, ContextManager, Iterable, Iterator, Optional, TypeVar

from stallwise.instrument import schema
from stallwise.instrument.recorder import Recorder, Span, rank_and_world
from stallwise.instrument.writer import Writer

T = TypeVar("T")


def _do_nothing() -> Any:
    """A context manager that does nothing, in C: a closed directory scan. A Python class would take twice the time."""
    try:
        scan = os.scandir(os.sep)
        scan.close()
        return scan
    except OSError:
        from contextlib import nullcontext

        return nullcontext()


_OFF = _do_nothing()
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
        _aim_span(_recorder)
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
        _aim_span(None)
        sys.stderr.write("stallwise: not recording (%s: %s); the job goes on\n" % (type(error).__name__, error))


def stop(why: str = "exit") -> None:
    """Ends the recording; the file is complete afterwards."""
    global _recorder
    recorder, _recorder = _recorder, None
    _aim_span(None)
    if recorder is not None:
        try:
            recorder.close(why)
        except Exception:
            pass


def recording() -> Optional[Recorder]:
    """The recorder, or None when off."""
    return _recorder


# Times a range of the step: `with stallwise.span("forward"):`. A partial is called in C, and its target can be swapped in
# place, so that off costs no Python frame at all and `from stallwise import span` still follows start() and stop().
span: Callable[[str], ContextManager[Any]] = functools.partial(next, itertools.repeat(_OFF))


def _aim_span(recorder: Optional[Recorder]) -> None:
    """Off, a span is the shared do-nothing object (`next` ignores the name); on, a new Span of this recorder."""
    target = (next, (itertools.repeat(_OFF),)) if recorder is None else (Span, (recorder,))
    span.__setstate__((*target, {}, {}))  # type: ignore[attr-defined]


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
    _aim_span(None)


def _at_exit() -> None:
    why = "exit"
    if getattr(sys, "last_type", None) is not None:
        why = "exception"
    stop(why)
