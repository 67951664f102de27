"""A progress bar on stderr, for people only: nothing is drawn into a pipe, and short jobs stay silent."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator
from typing import TypeVar

Thing = TypeVar("Thing")
PATIENCE_S = 0.7  # jobs shorter than this need no bar


def shown(things: Iterable[Thing], total: int, label: str) -> Iterator[Thing]:
    """Passes things through and draws how far it is."""
    if not sys.stderr.isatty() or total < 2:
        yield from things
        return
    began_s = time.monotonic()
    bar = None
    try:
        for count, thing in enumerate(things, start=1):
            if bar is None and time.monotonic() - began_s > PATIENCE_S:
                bar, task = _bar(total, label)
            if bar is not None:
                bar.update(task, completed=count, refresh=True)
            yield thing
    finally:
        if bar is not None:
            bar.stop()


def _bar(total: int, label: str):  # type: ignore[no-untyped-def]  # rich is imported only when a bar is drawn
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    bar = Progress(
        TextColumn(label), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(),
        console=Console(stderr=True), transient=True, auto_refresh=False,
    )  # fmt: skip
    bar.start()
    return bar, bar.add_task(label, total=total)
