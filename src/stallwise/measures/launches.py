"""How fast the host launches against how fast the device works, and what the profiler adds to that."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from stallwise.evidence.catalog import step as catalog
from stallwise.evidence.evidence import Item
from stallwise.evidence.timeline import Kind, Timeline
from stallwise.measures._idle import Idle
from stallwise.measures._report import said
from stallwise.measures._spans import Spans
from stallwise.measures._step_book import StepBook, book_of
from stallwise.measures._vocabulary import Host

# A traced launch-bound step takes this many times its clean length: 1.3 to 2 over the small models measured on the
# H200; recording stacks and shapes costs most.
PROFILER_FACTOR = (1.3, 1.6, 2.0)


def from_timeline(timeline: Timeline) -> Iterator[Item]:
    """Launch rate, delay, queue, and the launching idle time that would be left without a profiler."""
    book = book_of(timeline)
    view = book.view
    if not book.inside.any():
        return
    yield said(book, catalog.LAUNCHES, float(book.inside.sum()) / book.steps)
    kernels = book.inside & view.is_kernel
    if kernels.any():
        yield said(book, catalog.KERNEL_MEDIAN, float(np.median(view.duration[kernels])))
    known = book.inside & view.launched
    if not known.any():
        return
    delay = np.maximum(view.start[known] - view.launch_start[known], 0.0)
    yield said(book, catalog.LAUNCH_DELAY, float(np.median(delay)))
    yield said(book, catalog.QUEUE_DEPTH, float(delay.sum() / max(book.whole.total_s, 1e-12)))
    yield from _without_profiler(book)
    graph = view.calls(Host.LAUNCH)
    names = timeline.names
    is_graph = np.array(["GraphLaunch" in n for n in names])
    of_graph = is_graph[timeline.name[np.maximum(view.launch_row, 0)]] & known
    yield said(book, catalog.GRAPH_SHARE, float(of_graph.sum() / max(kernels.sum(), 1)))
    yield from _compiled(book, graph)


def _without_profiler(book: StepBook) -> Iterator[Item]:
    gaps = book.idle.get(Idle.LAUNCH)
    if not len(gaps):
        yield said(book, catalog.LAUNCH_WAIT_UNTRACED, 0.0, low=0.0, high=0.0)
        return
    left = [left_at(gaps, book.busy, factor) / book.steps for factor in PROFILER_FACTOR]
    traced = book.mean_s(gaps)
    yield said(book, catalog.LAUNCH_WAIT_UNTRACED, left[1], low=left[2], high=max(left[0], 0.0), note=f"{traced:.6f}")
    # Where the host is the limit, the time from gap to gap is the host's time for the launches between.
    starts = book.view.launch_start[book.inside & book.view.launched]
    if len(starts) > 1:
        between = np.diff(np.sort(starts))
        usual = between[between < 1e-3]
        if len(usual):
            yield said(book, catalog.LAUNCH_INTERVAL, float(np.median(usual)))


def left_at(gaps: Spans, busy: Spans, factor: float) -> float:
    """Idle time left when the host runs `factor` times faster: a cycle of work and gap shrinks to the work at most."""
    since = np.concatenate(([gaps.start[0]], gaps.end[:-1]))
    worked: NDArray[np.float64] = busy.within(since, gaps.start)
    cycle = worked + gaps.length_s
    return float(np.maximum(cycle / factor - worked, 0.0).sum())


def _compiled(book: StepBook, launches: NDArray[np.intp]) -> Iterator[Item]:
    t = book.timeline
    rows = t.rows(Kind.CPU_OP, Kind.ANNOTATION)
    region = np.array(["Torch-Compiled Region" in n or "CompiledFxGraph" in n for n in t.names])
    rows = rows[region[t.name[rows]]]
    if not len(rows):
        return
    spans = Spans.of(t.start_s[rows], t.end_s[rows])
    inside = spans.contains(t.start_s[launches])
    yield said(book, catalog.COMPILED_SHARE, float(inside.mean()) if len(inside) else 0.0)
    entries = np.array(["Torch-Compiled Region" in n for n in t.names])[t.name[rows]]
    yield said(book, catalog.COMPILED_REGIONS, float(entries.sum()) / book.steps)
