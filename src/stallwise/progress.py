"""How far long work is: one line on stderr with rate and time left, for people only. Pipes and short work get none."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from types import TracebackType
from typing import TypeVar

from stallwise.terminal import terminal_columns
from stallwise.units import Unit, show

Thing = TypeVar("Thing")
PATIENCE_S = 0.7  # work shorter than this needs no line
TICK_S = 0.2
BAR_CELLS = 20
TRUSTED_SHARE = 0.02  # of the work: a rate measured on less says little about the rest
ERASE = "\r\x1b[K"

_silent = False


def be_silent(silent: bool = True) -> None:
    """No line from here on, whoever looks."""
    global _silent
    _silent = silent


class Progress:
    """Draws while it is open. A thread does, so that one long thing moves the line, too."""

    def __init__(
        self, label: str, total: float, *, things: str = "", position: Callable[[], float] | None = None
    ) -> None:
        """`things` are counted; without a word they are bytes. `position` says how far, where nobody calls `advance`."""
        self.label, self.total, self.things = label, total, things
        self._position, self._done = position, 0.0
        self._began_s = time.monotonic()
        self._over = threading.Event()
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Progress:
        if not _silent and sys.stderr.isatty() and self.total > 0:
            self._thread = threading.Thread(target=self._draw, args=(sys.stderr,), daemon=True)
            self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._over.set()
        if self._thread is not None:
            self._thread.join()

    def advance(self, amount: float = 1.0) -> None:
        """So much more is done."""
        self._done += amount

    @property
    def done(self) -> float:
        """How far, never beyond the end."""
        position = self._position() if self._position else 0.0
        return min(max(self._done, position), self.total)

    def line(self, elapsed_s: float, width: int = 80) -> str:
        """What is drawn after so many seconds."""
        share = self.done / self.total
        filled = round(BAR_CELLS * share)
        parts = [f"{self.label} {'━' * filled}{'╌' * (BAR_CELLS - filled)} {self._amounts()}"]
        if share >= TRUSTED_SHARE and elapsed_s > 0:
            rate = self.done / elapsed_s
            parts.append(f"{rate:.3g} {self.things}/s" if self.things else show(rate, Unit.BYTE_PER_S))
            left_s = (self.total - self.done) / rate
            parts.append(f"{_clock(left_s)} left" if left_s > 0 else f"finishing, {_clock(elapsed_s)} so far")
        else:
            parts.append(f"{_clock(elapsed_s)} so far")
        return "  ".join(parts)[: width - 1]

    def _amounts(self) -> str:
        if self.things:
            return f"{self.done:.0f} of {self.total:.0f} {self.things}"
        return f"{show(self.done, Unit.BYTE)} of {show(self.total, Unit.BYTE)}"

    def _draw(self, stream: object) -> None:
        assert hasattr(stream, "write") and hasattr(stream, "flush")
        drawn = False
        wait_s = PATIENCE_S
        while not self._over.wait(wait_s):
            wait_s, drawn = TICK_S, True
            columns = terminal_columns()
            stream.write(ERASE + self.line(time.monotonic() - self._began_s, columns))
            stream.flush()
        if drawn:
            stream.write(ERASE)
            stream.flush()


def shown(
    work: Iterable[Thing], total: int, label: str, things: str, sizes: Sequence[float] = (),
    position: Callable[[], float] | None = None,
) -> Iterator[Thing]:  # fmt: skip
    """Passes things through and draws how far it is: by count, or by the bytes that `sizes` gives each of them."""
    whole = float(sum(sizes)) if sizes else float(total)
    with Progress(label, whole, things="" if sizes else things, position=position) as progress:
        for number, thing in enumerate(work):
            progress.advance(sizes[number] if number < len(sizes) else 1.0)
            yield thing


def _clock(seconds: float) -> str:
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    return (
        f"{whole // 60} min {whole % 60:02d} s" if whole < 3600 else f"{whole // 3600} h {whole % 3600 // 60:02d} min"
    )
