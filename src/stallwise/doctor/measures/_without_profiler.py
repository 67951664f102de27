"""The step without its profiler: what recording costs is taken off every recorded event, and the trace is replayed.

The result is a timeline like the one that was read, on which every other measure works unchanged. Device work keeps its length;
the host works faster, so that work whose launch came late starts earlier and work that waited for its stream does not.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from stallwise.doctor.measures._arrivals import batches_asked
from stallwise.doctor.measures._dependencies import graph_of_view
from stallwise.doctor.measures._host_pace import shortest_s
from stallwise.doctor.measures._host_points import HostPoints, points_of
from stallwise.doctor.measures._moved_events import moved
from stallwise.doctor.measures._purpose import purposes_of
from stallwise.doctor.measures._spans import Spans
from stallwise.doctor.measures._trace_view import TraceView
from stallwise.doctor.measures._vocabulary import Host
from stallwise.doctor.measures._windows import Windows, find_windows
from stallwise.evidence.catalog import step as catalog
from stallwise.evidence.evidence import Item
from stallwise.evidence.fact import Fact, Source
from stallwise.evidence.ledger import Category, Ledger
from stallwise.evidence.timeline import Kind, Recorded, Timeline
from stallwise.physics.costs.profiler import RecordingCost, torch_recording
from stallwise.physics.sim.replay.graph import NOTHING, Graph
from stallwise.physics.sim.replay.host import clock_of
from stallwise.physics.sim.replay.retime import Retimed, boundaries, retime

Floats = NDArray[np.float64]

LEAST_LEFT = 0.4  # of the time between two recorded moments stays: recording is not all that a host does
DRIVERS = ("cuda", "cu", "hip")  # recorders of other devices were not measured
# Told by operators; with device activity alone, where only calls and device work cost anything, by what Kineto says of itself.
OPERATORS = ("aten::", "autograd::", "ProfilerStep")
KINETO = "cupti_version"
# Of the step. Of twelve corrections of 3 to 6% that were measured on the H200 five came nearer to the clean step than the trace, of 77
# larger ones 70; clean loops of one program, before and after a trace, differ by 4% in the median and by 9% in a third of 230 pairs.
NOTICED = 0.06
# Of the cost. Where most of it lies behind waits and the device's work, the host is rid of it whatever the step says.
REACHES = 0.5
SURE = 1.6  # standard errors of the traced steps' mean: Student's 90% for the few steps that people record
# Beside the doubt in the cost, runs differ: by a tenth where the host sets the pace (178 pairs of clean steps on the H200 before
# and after a recording), by a fiftieth where the device does. With both, 60 of 69 clean steps lie inside their range.
HOST_PACE, DEVICE_PACE = 0.1, 0.02
HOST_LED = (
    0.02  # of the step between the cheapest and the dearest recorder: with less, recording did not reach the pace
)
LAG_LEFT = 0.4  # of the time between queued work
LEAST_LAUNCH_S = (
    1.5e-6  # no driver launches faster: shorter calls are captured into a graph, and nothing of that is a step
)
DISPATCH_S = 2e-6  # from a hand-over to a start at least
MOST_WORK = 20_000  # pieces of work over which the doubt is found
PEERS_SHARE = 0.01  # of the device's work: less communication does not set the pace


@dataclass(frozen=True, slots=True, eq=False)
class Cleaned:
    """A timeline without its profiler, and the mean step before and after, with its range."""

    timeline: Timeline
    where: str  # the steps as a place in the file
    steps: int
    traced_step_s: float
    clean_step_s: float
    low_s: float
    high_s: float

    def with_clean_step(self, ledger: Ledger) -> Ledger:
        """The ledger with both steps; what the replay took off and nobody would notice is in no account of the host."""
        seconds = dict(ledger.seconds)
        seconds[Category.OTHER] = seconds.get(Category.OTHER, 0.0) + max(self.clean_step_s - ledger.whole_s, 0.0)
        whole_s = sum(seconds.values())
        ends_s = (min(self.low_s, whole_s), max(self.high_s, whole_s))
        return replace(
            ledger, seconds=seconds, traced_step_s=self.traced_step_s, clean_step_s=whole_s, clean_ends_s=ends_s
        )


def clean_steps(cleaned: Cleaned) -> Iterator[Item]:
    """The step as traced, and as it is without the profiler."""
    t = cleaned.timeline
    source = Source(t.source.file, cleaned.where)
    yield Fact(catalog.TRACED_STEP, cleaned.traced_step_s, source, t.scope, cleaned.steps)
    yield Fact(
        catalog.REPLAYED_STEP,
        cleaned.clean_step_s,
        source,
        t.scope,
        cleaned.steps,
        cleaned.low_s,
        cleaned.high_s,
        "replayed without what recording costs",
    )


def recording_cost(view: TraceView) -> RecordingCost | None:
    """What recording cost in this trace; None where the recorder is not one that was measured."""
    t = view.timeline
    if KINETO not in t.properties and not any(name.startswith(OPERATORS) for name in t.names[:20000]):
        return None
    drivers = {t.names[code] for code in t.codes(view.runtime_rows)}
    if drivers and not any(name.startswith(DRIVERS) for name in drivers):
        return None
    launches = t.duration_s[view.calls(Host.LAUNCH)]
    if len(launches) and np.median(launches) < LEAST_LAUNCH_S:
        return None
    return torch_recording(shortest_s(view))


def without_profiler(timeline: Timeline) -> Cleaned | None:
    """None where nothing can be taken off: no device work, a recorder whose cost nobody measured, or other ranks.

    With other ranks the pace is set by whoever is last at a collective. A host that works faster there waits longer, and one
    rank's trace does not tell how much faster the others would be.
    """
    view = TraceView(timeline)
    cost = recording_cost(view) if len(view) else None
    if cost is None or has_peers(view):
        return None
    graph, order = graph_of_view(view)
    points = points_of(view, cost)
    points = HostPoints(points.at_s, points.cost_s + _own_work(view, points.at_s))
    windows = find_windows(view)
    played = _played(graph, points, cost, 1.0)
    step = _mean_step(graph, played, windows.host, windows.unit)
    traced = float(np.diff(windows.device).mean())
    low, high = _doubt(graph, points, cost, windows)
    # What is less than runs, or the traced steps themselves, differ by is not told from nothing: then the step is as long as
    # it was traced.
    unnoticed = max(NOTICED * traced, SURE * _standard_error(np.diff(windows.device)))
    clean_s = traced if traced - unnoticed < step < traced else step
    pace = HOST_PACE if high - low > HOST_LED else DEVICE_PACE
    # Batches that were ready for the traced host may not be for a faster one: how fast they are made, nobody saw.
    slowest = traced if len(batches_asked(view)) else clean_s
    if (free := _never_late(graph)) is not graph:
        low = min(low, _mean_step(free, _played(free, points, cost, 1.0), windows.host, windows.unit) / step)
    cost_s = float(points.cost_s.sum()) / len(windows)
    del points
    low_s, high_s = (1 - pace) * low * step, (1 + pace) * max(high * step, slowest)
    recorded = Recorded(timeline.start_s, timeline.end_s, windows.device, (low_s, high_s))
    if REACHES * cost_s < traced - step < NOTICED * traced:
        clean = replace(timeline, recorded=recorded)  # in doubt nothing moves, so that the accounts sum to what is told
    else:
        clean = _moved(view, graph, order, played, recorded)
    return Cleaned(clean, windows.where, len(windows), traced, clean_s, low_s, high_s)


def _never_late(graph: Graph) -> Graph:
    """The run with makers of batches who are as fast as any host: more of them may have stood by than were seen at work."""
    paced = (graph.wait_for == NOTHING) & (graph.waited_s <= 0) & np.isfinite(graph.pace_s)
    return replace(graph, wait_for=np.where(paced, len(graph), graph.wait_for)) if paced.any() else graph


def _standard_error(steps_s: Floats) -> float:
    """How far the mean of these steps lies from that of many more; nothing is known of it from one."""
    return float(np.std(steps_s, ddof=1) / np.sqrt(len(steps_s))) if len(steps_s) > 1 else 0.0


def _doubt(graph: Graph, points: HostPoints, cost: RecordingCost, windows: Windows) -> tuple[float, float]:
    """The step at the cheapest and the dearest recorder that fits what was measured, over the middle one."""
    steps = min(graph.steps_within(windows.host, MOST_WORK), len(windows))
    marks = windows.host[: steps + 1]
    if steps < len(windows):
        graph = graph.until(float(marks[-1]))
        last = int(np.searchsorted(points.at_s, marks[-1])) + 1
        points = HostPoints(points.at_s[:last], points.cost_s[: max(last - 1, 0)])
    found = [
        _mean_step(graph, _played(graph, points, cost, part), marks, windows.unit)
        for part in (1.0, cost.doubt_low, cost.doubt_high)
    ]
    if not found[0] > 0:
        return 1.0, 1.0
    return min(found) / found[0], max(found) / found[0]


def has_peers(view: TraceView) -> bool:
    """Whether other ranks set the pace too."""
    world = view.timeline.distributed.get("world_size")
    if isinstance(world, (int, float)) and world > 1:
        return True
    talks = purposes_of(view).communication
    return float(view.duration[talks].sum()) > PEERS_SHARE * float(view.duration.sum())


def _played(graph: Graph, points: HostPoints, cost: RecordingCost, part: float) -> Retimed:
    """The run with this part of the recorder's cost taken off."""
    clock = clock_of(points.at_s, part * points.cost_s, graph.wait_s, graph.waited_s, LEAST_LEFT, owing=True)
    handed_lag = np.maximum(graph.handed_lag_s - part * cost.runtime_call_s, np.minimum(graph.handed_lag_s, DISPATCH_S))
    record = part * cost.device_record_s
    stream_lag = np.where(
        (graph.stream_lag_s > 0) & (graph.stream_lag_s < 4 * cost.device_record_s),
        np.maximum(graph.stream_lag_s - record, LAG_LEFT * graph.stream_lag_s),
        graph.stream_lag_s,
    )
    return retime(replace(graph, handed_lag_s=handed_lag, stream_lag_s=stream_lag), clock)


def _own_work(view: TraceView, at_s: Floats) -> Floats:
    """Time in which the profiler says itself that it works: buffers handed over, records flushed."""
    t = view.timeline
    rows = t.rows(Kind.OVERHEAD)
    if not len(rows):
        return np.zeros(max(len(at_s) - 1, 0))
    names = [n.lower() for n in t.names]
    # Loading code and standing before a full queue are the program's own.
    other = np.array(["loading" in n or "module" in n or "command buffer" in n for n in names], bool)
    rows = rows[~other[t.name[rows]] & view.working_lanes[t.lane[rows]]]
    spans = Spans.of(t.start_s[rows], t.end_s[rows])
    return spans.within(at_s[:-1], at_s[1:])


def _mean_step(graph: Graph, played: Retimed, marks_s: Floats, unit: str) -> float:
    found = boundaries(graph, played, played.start_s + graph.duration_s, marks_s)
    if unit == "iteration" and len(played.start_s):
        found[0] = max(found[0], float(played.start_s.min()))
    return float(np.diff(found).mean())


def _moved(view: TraceView, graph: Graph, order: NDArray[np.intp], played: Retimed, before: Recorded) -> Timeline:
    """The timeline with new times, sorted again."""
    t = view.timeline
    start, end = moved(t, np.arange(len(t.start_s)), graph, played, view.work[order], graph.duration_s)
    turn = np.argsort(start, kind="stable")
    return replace(
        t,
        start_s=start[turn],
        duration_s=end[turn] - start[turn],
        kind=t.kind[turn],
        name=t.name[turn],
        lane=t.lane[turn],
        correlation=t.correlation[turn],
        external=t.external[turn],
        size_bytes=t.size_bytes[turn],
        detail=t.detail[turn],
        recorded=replace(before, start_s=before.start_s[turn], end_s=before.end_s[turn]),
    )
