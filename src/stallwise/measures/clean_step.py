"""The profiler's own cost: with a clean step time known, the host's part of the traced step is scaled back to it."""

from __future__ import annotations

from collections.abc import Iterator

from stallwise.evidence.catalog import step as catalog
from stallwise.evidence.evidence import Evidence, Item
from stallwise.evidence.fact import Fact, Note, Source
from stallwise.evidence.ledger import Account, Ledger

ORDER = 6
NOISE = 0.03  # of the step
# What the profiler inflates, in the order in which its cost is taken back: launching first, then its own pauses, then
# other host time. Device time is not touched.
PARTS_OF_HOST_WAIT = (
    catalog.COMPILE_WAIT, catalog.PLAN_WAIT, catalog.CPU_WORK_WAIT, catalog.GC_WAIT, catalog.ALLOC_WAIT,
    catalog.SYNC_WAIT, catalog.SILENT_WAIT,
)  # fmt: skip
INFLATED = (Account.LAUNCH_GAP, Account.OTHER, Account.HOST_WAIT)


def from_evidence(evidence: Evidence) -> Iterator[Item]:
    """A corrected ledger and step time, next to the traced ones."""
    clean, traced = evidence.get(catalog.CLEAN_STEP), evidence.get(catalog.STEP_TIME)
    ledger = min(reversed(evidence.ledgers), key=lambda x: len(x.scope.to_dict()), default=None)
    if traced is None or ledger is None:
        return
    yield Fact(catalog.TRACED_STEP, traced.number, traced.source, traced.scope, traced.samples)
    if clean is None or clean.number <= 0:
        return
    excess = ledger.whole_s - clean.number
    if excess <= 0:
        yield from _less_overlap(evidence, ledger, -excess, clean)
        return
    seconds = dict(ledger.seconds)
    for account in INFLATED:
        taken = min(excess, seconds.get(account, 0.0))
        seconds[account] = seconds.get(account, 0.0) - taken
        excess -= taken
    source = Source(ledger.source.file, f"{ledger.source.where}, corrected to the clean step")
    corrected = Ledger(seconds, source, ledger.scope, ledger.samples, ledger.unit)
    yield corrected
    yield Fact(catalog.STEP_TIME, corrected.whole_s, source, ledger.scope, ledger.samples)
    yield from _parts_of_host_wait(evidence, ledger, corrected)
    yield from _no_longer_than_the_step(evidence, ledger, corrected)
    gap = seconds.get(Account.LAUNCH_GAP, 0.0)
    yield Fact(catalog.LAUNCH_WAIT, gap, source, ledger.scope, ledger.samples)
    yield Fact(catalog.LAUNCH_WAIT_UNTRACED, gap, source, ledger.scope, ledger.samples, gap, gap)
    if excess > 0:
        yield Note(
            "the clean step is shorter than the device's own time in the trace: other shapes or clocks?", clean.source
        )


def _parts_of_host_wait(evidence: Evidence, traced: Ledger, corrected: Ledger) -> Iterator[Item]:
    """The waits that make up the account shrink with it: a part of the traced step is no part of the shorter clean one."""
    whole, left = traced.seconds.get(Account.HOST_WAIT, 0.0), corrected.seconds.get(Account.HOST_WAIT, 0.0)
    if not 0 <= left < whole:
        return
    for quantity in PARTS_OF_HOST_WAIT:
        fact = evidence.get(quantity)
        if fact is not None and fact.number > 0:
            yield Fact(quantity, fact.number * left / whole, corrected.source, fact.scope, fact.samples)


def _no_longer_than_the_step(evidence: Evidence, traced: Ledger, corrected: Ledger) -> Iterator[Item]:
    """An optimizer that takes longer than the whole clean step was measured in the traced one: it takes its share of either."""
    span = evidence.get(catalog.OPTIMIZER_SPAN)
    if span is None or span.number <= corrected.whole_s or traced.whole_s <= 0:
        return
    for quantity in (catalog.OPTIMIZER_SPAN, catalog.OPTIMIZER_IDLE):
        fact = evidence.get(quantity)
        if fact is not None:
            scaled = fact.number * corrected.whole_s / traced.whole_s
            yield Fact(quantity, scaled, corrected.source, fact.scope, fact.samples)


def _less_overlap(evidence: Evidence, ledger: Ledger, extra: float, clean: Fact) -> Iterator[Item]:
    """The clean loop hides less than the traced one: what the loader hid behind kernels is the first to show."""
    if extra < NOISE * ledger.whole_s:
        return
    hidden = max(evidence.value(catalog.LOADER_TIME, 0.0) - evidence.value(catalog.INPUT_WAIT, 0.0), 0.0)
    shown = min(extra, hidden)
    seconds = dict(ledger.seconds)
    seconds[Account.INPUT_WAIT] = seconds.get(Account.INPUT_WAIT, 0.0) + shown
    seconds[Account.OTHER] = seconds.get(Account.OTHER, 0.0) + extra - shown
    source = Source(ledger.source.file, f"{ledger.source.where}, stretched to the clean step")
    yield Ledger(seconds, source, ledger.scope, ledger.samples, ledger.unit)
    yield Fact(catalog.STEP_TIME, clean.number, source, ledger.scope, ledger.samples)
    if shown:
        wait = seconds[Account.INPUT_WAIT]
        yield Fact(catalog.INPUT_WAIT, wait, source, ledger.scope, ledger.samples)
    yield Note(
        "the clean step is longer than the traced one: the clean loop waits for the device more often", clean.source
    )
