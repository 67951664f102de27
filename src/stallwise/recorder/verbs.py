"""The verbs of `import stallwise`. Off, each is a test or two and a shared do-nothing object."""

from __future__ import annotations

import atexit
import os
import sys
from typing import Any, Callable, ContextManager, Iterable, Iterator, Optional, TypeVar

from stallwise.recorder import schema, step_boundaries
from stallwise.recorder.error_origin import ours, quietly, say
from stallwise.recorder.recorder import Recorder, rank_and_world
from stallwise.recorder.span import Span
from stallwise.recorder.writer import Writer, claim

T = TypeVar("T")


class _Off:
    """What a span is when nothing records: in and out without a Python frame, in half the time of two methods."""

    __slots__ = ()
    __enter__ = "".isascii  # any C function of no arguments will do
    __exit__ = "".format  # takes what `with` hands over and returns an empty string: exceptions pass


_OFF: Any = _Off()
_recorder: Optional[Recorder] = None
_at_first_use: Optional[Callable[[], None]] = None  # under `stallwise record`: begins the recording
_prepared = False


def start(folder: str = "stallwise_run", *, auto: bool = True, watchdog: bool = True, stacks: bool = True) -> None:
    """Starts recording into this process's own file in `folder`. Twice is once. Never raises for reasons of ours."""
    global _recorder, _at_first_use
    _at_first_use = None
    if _recorder is not None:
        return
    try:
        _prepare()
        rank, world = rank_and_world()
        folder = os.path.abspath(folder)
        names = [schema.file_name(rank or 0), schema.file_name(rank or 0, os.getpid())]
        if rank is not None:
            names = names[:1]  # a launcher numbered it: a restarted rank goes on in its own file
        writer = Writer(os.path.join(folder, names[0]), claim=lambda: claim(folder, names))
        _recorder = recorder = Recorder(writer, rank=rank or 0, world=world)
        if watchdog:
            from stallwise.recorder.watchdog import Watchdog

            Watchdog(recorder).start()
        if stacks:
            from stallwise.recorder.sampler import Sampler

            Sampler(recorder).start()
        if auto:
            from stallwise.recorder.stages import install

            install(recorder)
    except Exception as error:
        if not ours(error):
            raise
        _recorder = None
        say("not recording (%s: %s); the job goes on" % (type(error).__name__, error))


def at_first_use(begin: Callable[[], None]) -> None:
    """A job that imports no framework may still use the verbs: its first one calls `begin`, which starts the recording."""
    global _at_first_use
    if _recorder is None:
        _at_first_use = begin


def _begun() -> Optional[Recorder]:
    """Off, or the recording that was to begin with the first verb."""
    global _at_first_use
    begin, _at_first_use = _at_first_use, None
    if begin is not None:
        quietly(begin)
    return _recorder


def _prepare() -> None:
    """Once a process: what must happen at its end and in its forked children."""
    global _prepared
    if not _prepared:
        _prepared = True
        atexit.register(_at_exit)
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=_forget)


def stop(why: str = "exit") -> None:
    """Ends the recording; the file is complete afterwards, and everything that was replaced is back."""
    global _recorder, _at_first_use
    recorder, _recorder, _at_first_use = _recorder, None, None
    if recorder is not None:
        quietly(recorder.close, why)


def recording() -> Optional[Recorder]:
    """The recorder, or None when off."""
    return _recorder


def span(name: str) -> ContextManager[Any]:
    """Times a range of the step: `with stallwise.span("forward"):`."""
    recorder = _recorder
    if recorder is None:
        recorder = _begun() if _at_first_use is not None else None
        if recorder is None:
            return _OFF  # type: ignore[no-any-return]
    return Span(recorder, name if type(name) is str else _text(name))


def step() -> None:
    """Call once at the end of every step; from the first call on, these are the steps' borders."""
    recorder = _recorder or _begun()
    if recorder is not None and recorder.boundaries.sign(step_boundaries.USER):
        quietly(recorder.step)


def steps(loader: Iterable[T]) -> Iterator[T]:
    """Wraps a loader: each pass of the loop is a step, and the wait for each batch is timed. A pass that is left is one, too."""
    recorder = _recorder or _begun()
    if recorder is not None:
        recorder.boundaries.lead(step_boundaries.USER)
    with span(schema.BATCH_WAIT):
        iterator = iter(loader)
    while True:
        with span(schema.BATCH_WAIT):
            try:
                batch = next(iterator)
            except StopIteration:
                return
        if _recorder is not None and _recorder.stages is not None:
            _recorder.stages.batch_came()
        try:
            yield batch
        finally:  # also by `break`, `return` or an exception in the loop: its generator is closed then
            step()


def mark(name: str, note: str = "") -> None:
    """Remembers an instant: an epoch's start, a checkpoint, a change of learning rate."""
    recorder = _recorder or _begun()
    if recorder is not None:
        quietly(recorder.mark, _text(name), _text(note))


def gauge(name: str, value: Any) -> None:
    """Records a number with the current step. A tensor is refused: reading it would be a sync."""
    recorder = _recorder or _begun()
    if recorder is not None and isinstance(value, (int, float)):
        try:
            recorder.gauge(_text(name), value)
        except OverflowError:  # an integer beyond every float
            pass


def _text(value: Any) -> str:
    """A name, whatever it was given as."""
    if type(value) is str:
        return value
    try:
        return str(value)[:200]
    except Exception:
        return type(value).__name__


def _forget() -> None:
    """In a forked child the parent's recording is not ours: it runs as without us."""
    global _recorder
    recorder, _recorder = _recorder, None
    if recorder is not None and recorder.stages is not None:
        recorder.stages.remove()


def _at_exit() -> None:
    why = "exit"
    if getattr(sys, "last_type", None) is not None:
        why = "exception"
    stop(why)
