"""The ledger: where every second of a mean step went, and the device's idle time by reason."""

from __future__ import annotations

from collections.abc import Iterator

from stallwise.doctor.measures._idle import Idle
from stallwise.doctor.measures._replay_range import ranges_of
from stallwise.doctor.measures._report import by_step, step_fact
from stallwise.doctor.measures._step_index import step_index
from stallwise.evidence.catalog import step as catalog
from stallwise.evidence.evidence import Item
from stallwise.evidence.ledger import Category, Ledger
from stallwise.evidence.timeline import Timeline

IDLE_QUANTITIES = {
    Idle.INPUT: catalog.INPUT_WAIT,
    Idle.CHECKPOINT: catalog.CHECKPOINT_WAIT,
    Idle.COMPILE: catalog.COMPILE_WAIT,
    Idle.PLAN: catalog.PLAN_WAIT,
    Idle.FIRST_LAUNCH: catalog.FIRST_LAUNCH_WAIT,
    Idle.CAPTURE: catalog.CAPTURE_WAIT,
    Idle.CPU_WORK: catalog.CPU_WORK_WAIT,
    Idle.GC: catalog.GC_WAIT,
    Idle.ALLOC: catalog.ALLOC_WAIT,
    Idle.SYNC: catalog.SYNC_WAIT,
    Idle.COPY_CALL: catalog.COPY_CALL_WAIT,
    Idle.PROFILER: catalog.PROFILER_WAIT,
    Idle.LAUNCH: catalog.LAUNCH_WAIT,
    Idle.SILENT: catalog.SILENT_WAIT,
    Idle.DISPATCH: catalog.DISPATCH_WAIT,
    Idle.UNRECORDED: catalog.UNRECORDED_WAIT,
    Idle.UNKNOWN: catalog.UNKNOWN_WAIT,
}


def from_timeline(timeline: Timeline) -> Iterator[Item]:
    """One ledger for the mean step, and each reason step by step."""
    index = step_index(timeline)
    if not len(index.view):
        return
    categories = index.categories
    seconds = {a: index.mean_s(categories[a]) for a in Category if a in categories}
    ranges = ranges_of(seconds)
    yield Ledger(seconds, index.source, timeline.scope, index.steps, index.windows.unit, ranges=ranges)
    yield step_fact(index, catalog.BUSY_TIME, index.mean_s(index.busy))
    yield step_fact(index, catalog.COMPUTE_TIME, index.mean_s(index.compute))
    yield step_fact(index, catalog.EXPOSED_COMMUNICATION, index.mean_s(index.exposed_communication))
    yield step_fact(index, catalog.EXPOSED_COPY, index.mean_s(categories[Category.COPY] & index.busy))
    for reason, quantity in IDLE_QUANTITIES.items():
        spans = index.idle.get(reason)
        if reason is Idle.CHECKPOINT:
            spans = categories[Category.CHECKPOINT]
        values = index.per_step(spans)
        yield step_fact(index, quantity, float(values.mean()), low=float(values.min()), high=float(values.max()))
        if spans.total_s > 0:
            yield by_step(index, quantity, values)
