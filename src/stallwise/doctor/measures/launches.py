"""How fast the host launches against how fast the device works."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from stallwise.doctor.measures._idle import Idle
from stallwise.doctor.measures._report import step_fact
from stallwise.doctor.measures._spans import Spans
from stallwise.doctor.measures._step_index import StepIndex, step_index
from stallwise.doctor.measures._vocabulary import Host
from stallwise.evidence.catalog import step as catalog
from stallwise.evidence.evidence import Item
from stallwise.evidence.timeline import Kind, Timeline


def from_timeline(timeline: Timeline) -> Iterator[Item]:
    """Launch rate, delay and queue."""
    index = step_index(timeline)
    view = index.view
    if not index.inside.any():
        return
    yield step_fact(index, catalog.LAUNCHES, float(index.inside.sum()) / index.steps)
    kernels = index.inside & view.is_kernel
    if kernels.any():
        yield step_fact(index, catalog.KERNEL_MEDIAN, float(np.median(view.duration[kernels])))
    known = index.inside & view.launched
    if not known.any():
        return
    delay = np.maximum(view.start[known] - view.launch_start[known], 0.0)
    yield step_fact(index, catalog.LAUNCH_DELAY, float(np.median(delay)))
    yield step_fact(index, catalog.QUEUE_DEPTH, float(delay.sum() / max(index.whole.total_s, 1e-12)))
    yield from _interval(index)
    graph = view.calls(Host.LAUNCH)
    names = timeline.names
    is_graph = np.array(["GraphLaunch" in n for n in names])
    of_graph = is_graph[timeline.name[np.maximum(view.launch_row, 0)]] & known
    yield step_fact(index, catalog.GRAPH_SHARE, float(of_graph.sum() / max(kernels.sum(), 1)))
    yield from _compiled(index, graph)


def _interval(index: StepIndex) -> Iterator[Item]:
    """Where the host is the limit, the time from gap to gap is the host's time for the launches between."""
    starts = index.view.launch_start[index.inside & index.view.launched]
    if len(index.idle.get(Idle.LAUNCH)) and len(starts) > 1:
        between = np.diff(np.sort(starts))
        usual = between[between < 1e-3]
        if len(usual):
            yield step_fact(index, catalog.LAUNCH_INTERVAL, float(np.median(usual)))


def _compiled(index: StepIndex, launches: NDArray[np.intp]) -> Iterator[Item]:
    t = index.timeline
    rows = t.rows(Kind.CPU_OP, Kind.ANNOTATION)
    region = np.array(["Torch-Compiled Region" in n or "CompiledFxGraph" in n for n in t.names])
    rows = rows[region[t.name[rows]]]
    if not len(rows):
        return
    spans = Spans.of(t.start_s[rows], t.end_s[rows])
    inside = spans.contains(t.start_s[launches])
    yield step_fact(index, catalog.COMPILED_SHARE, float(inside.mean()) if len(inside) else 0.0)
    entries = np.array(["Torch-Compiled Region" in n for n in t.names])[t.name[rows]]
    yield step_fact(index, catalog.COMPILED_REGIONS, float(entries.sum()) / index.steps)
