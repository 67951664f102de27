"""A span around a `yield`: while its generator or coroutine is suspended, somebody else's time passes, and the span pauses.

Which spans hold a `yield` is read from the byte code, once for each `with`. Python 3.12 says when such a frame is suspended and
resumed at hardly any cost; before, a profile function of this thread does, while a span of that kind is open and nobody else's is
set. A generator that is a context manager (contextlib) is suspended by its `with` block, which is what the span is for: there
the frame with the `with` statement counts.
"""

from __future__ import annotations

import dis
import sys
import threading
from typing import TYPE_CHECKING, Any, Dict, List, Optional, Tuple

if TYPE_CHECKING:
    from stallwise.recorder.span import Span

SUSPENDABLE = 0x20 | 0x80 | 0x200  # CO_GENERATOR, CO_COROUTINE, CO_ASYNC_GENERATOR
_CONTEXTS = "contextlib"
_SETUP, _EXIT = ("SETUP_WITH", "SETUP_ASYNC_WITH"), "WITH_EXCEPT_START"
_MOST_KNOWN = 1000  # code that is made anew each time must not fill the memory
_YIELDS = ("YIELD_VALUE", "YIELD_FROM")
_TOOL_IDS = (3, 4, 5)  # what debuggers, coverage and profilers leave free

_holds_yield: Dict[Tuple[Any, int], bool] = {}  # by code and instruction


def watch(span: "Span", frame: Any) -> Optional["_Watch"]:
    """Has a span pause with its frame; None where the frame cannot be suspended inside it."""
    while frame.f_code.co_flags & SUSPENDABLE:
        caller = frame.f_back
        if caller is None or caller.f_globals.get("__name__") != _CONTEXTS or caller.f_back is None:
            break
        frame = caller.f_back
    if not frame.f_code.co_flags & SUSPENDABLE:
        return None
    at = frame.f_code, frame.f_lasti
    found = _holds_yield.get(at)
    if found is None:
        found = _has_yield(*at)
        if len(_holds_yield) < _MOST_KNOWN:
            _holds_yield[at] = found
    if not found:
        return None
    watcher = _watcher()
    return watcher if watcher.begin(span, frame) else None


def _has_yield(code: Any, lasti: int) -> bool:
    """A `yield` or `await` lies inside the `with` block that begins at this instruction."""
    try:
        instructions = list(dis.get_instructions(code))
        here = next(i for i, x in enumerate(instructions) if x.offset == lasti)
        first, last = _block(code, instructions, here)
    except Exception:  # no `with` (somebody calls `__enter__`), or a Python whose byte code looks different: all counts
        return False
    return any(first <= x.offset < last and x.opname in _YIELDS for x in instructions)


def _block(code: Any, instructions: List[Any], here: int) -> Tuple[int, int]:
    """Where the block begins and ends whose `__enter__` is called here."""
    first = int(instructions[here + 1].offset)
    if instructions[here].opname in _SETUP:  # before Python 3.11
        return first, int(instructions[here].argval)
    table: List[Any] = dis._parse_exception_table(code)  # type: ignore[attr-defined]
    handler = next(entry.target for entry in table if entry.start == first)
    after = [x.opname for x in instructions if x.offset >= handler][:4]
    if _EXIT not in after:
        raise ValueError("a try, no with")
    return first, max(int(entry.end) for entry in table if entry.target == handler)


class _Watch:
    """Spans by the frame they pause with. One for the process; frames belong to one thread at a time."""

    def __init__(self) -> None:
        self._spans: Dict[Any, List["Span"]] = {}

    def begin(self, span: "Span", frame: Any) -> bool:
        self._spans.setdefault(frame, []).append(span)
        return True

    def forget(self, span: "Span") -> None:
        for frame, spans in list(self._spans.items()):
            if span in spans:
                spans.remove(span)
                if not spans:
                    self._spans.pop(frame, None)

    def suspended(self, frame: Any) -> None:
        for span in reversed(self._spans.get(frame, ())):
            span.close()

    def resumed(self, frame: Any) -> None:
        for span in self._spans.get(frame, ()):
            span.open()


class _Monitored(_Watch):
    """By sys.monitoring, for the code in question alone."""

    def __init__(self, monitoring: Any, tool: int) -> None:
        super().__init__()
        self._monitoring, self._tool = monitoring, tool
        self._codes: Dict[Any, int] = {}
        monitoring.use_tool_id(tool, "stallwise spans")
        events = monitoring.events
        self._events = events.PY_YIELD | events.PY_RESUME
        monitoring.register_callback(tool, events.PY_YIELD, lambda *_: self.suspended(sys._getframe(1)))
        monitoring.register_callback(tool, events.PY_RESUME, lambda *_: self.resumed(sys._getframe(1)))

    def begin(self, span: "Span", frame: Any) -> bool:
        code = frame.f_code
        if code not in self._codes:
            self._codes[code] = 1
            self._monitoring.set_local_events(self._tool, code, self._events)
        return super().begin(span, frame)


class _Profiled(_Watch):
    """By a profile function of the thread, while such a span is open."""

    def __init__(self) -> None:
        super().__init__()
        self._thread = 0

    def begin(self, span: "Span", frame: Any) -> bool:
        if not self._spans:
            if sys.getprofile() is not None:
                return False
            self._thread = threading.get_ident()
            sys.setprofile(self._on_event)
        elif threading.get_ident() != self._thread:
            return False
        return super().begin(span, frame)

    def forget(self, span: "Span") -> None:
        super().forget(span)
        if not self._spans and sys.getprofile() == self._on_event:
            sys.setprofile(None)

    def _on_event(self, frame: Any, event: str, arg: Any) -> None:
        if frame in self._spans:
            if event == "return":
                self.suspended(frame)
            elif event == "call":
                self.resumed(frame)


_one: Optional[_Watch] = None


def _watcher() -> _Watch:
    global _one
    if _one is None:
        monitoring: Any = getattr(sys, "monitoring", None)
        tool = next((i for i in _TOOL_IDS if monitoring.get_tool(i) is None), None) if monitoring is not None else None
        _one = _Monitored(monitoring, tool) if tool is not None else _Profiled()
    return _one


def end() -> None:
    """The recording is over: nothing of ours stays in the interpreter."""
    global _one
    watcher, _one = _one, None
    if isinstance(watcher, _Monitored):
        for code in watcher._codes:
            watcher._monitoring.set_local_events(watcher._tool, code, 0)
        for event in (watcher._monitoring.events.PY_YIELD, watcher._monitoring.events.PY_RESUME):
            watcher._monitoring.register_callback(watcher._tool, event, None)
        watcher._monitoring.free_tool_id(watcher._tool)
    elif isinstance(watcher, _Profiled) and sys.getprofile() == watcher._on_event:
        sys.setprofile(None)
