"""The ledger: where every second of a mean step went, and the device's idle time by reason."""

from __future__ import annotations

from collections.abc import Iterator

from stallwise.doctor.measures._idle import Idle
from stallwise.doctor.measures._replay_range import ranges_of
from stallwise.doctor.measures._report import by_step, said
from stallwise.doctor.measures._step_book import book_of
from stallwise.evidence.catalog import step as catalog
from stallwise.evidence.evidence import Item
from stallwise.evidence.ledger import Account, Ledger
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
    book = book_of(timeline)
    if not len(book.view):
        return
    accounts = book.accounts
    seconds = {a: book.mean_s(accounts[a]) for a in Account if a in accounts}
    ranges = ranges_of(seconds)
    yield Ledger(seconds, book.source, timeline.scope, book.steps, book.windows.unit, ranges=ranges)
    yield said(book, catalog.BUSY_TIME, book.mean_s(book.busy))
    yield said(book, catalog.COMPUTE_TIME, book.mean_s(book.compute))
    yield said(book, catalog.EXPOSED_COMMUNICATION, book.mean_s(book.exposed_communication))
    yield said(book, catalog.EXPOSED_COPY, book.mean_s(accounts[Account.COPY] & book.busy))
    for reason, quantity in IDLE_QUANTITIES.items():
        spans = book.idle.get(reason)
        if reason is Idle.CHECKPOINT:
            spans = accounts[Account.CHECKPOINT]
        values = book.per_step(spans)
        yield said(book, quantity, float(values.mean()), low=float(values.min()), high=float(values.max()))
        if spans.total_s > 0:
            yield by_step(book, quantity, values)
