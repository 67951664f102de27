"""The clean step where somebody measured it: stated, or seen in the log or the record beside the trace.

A replay estimates the step without its profiler; untraced steps of the same run know it. The ledger of the replay is brought to
that length: what recording cost more or less than the estimate lies where the host launches, then in its other waits.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from stallwise.doctor.measures._replay_range import ranges_of
from stallwise.evidence.catalog import run, stages
from stallwise.evidence.catalog import step as catalog
from stallwise.evidence.evidence import Evidence, Item
from stallwise.evidence.fact import Fact, Note, Source
from stallwise.evidence.ledger import Category, Ledger
from stallwise.evidence.quantity import Quantity
from stallwise.evidence.step_time import run_ledger
from stallwise.units import Unit

ORDER = 6
NOISE = 0.03  # of the step
ENOUGH_STEPS = 8  # untraced ones, for their median to be the run's
DEVICE_NOISE = 0.05  # of the device's busy time: clocks move it by less
SLOWER_THAN_TRACED = 0.05  # a clean step is not longer than the traced one by more; if it is, it counts something else
# What the profiler inflates, in the order in which its cost is taken back: launching first, then its own pauses, then
# other host time. Device time is not touched.
PARTS_OF_HOST_WAIT = (
    catalog.COMPILE_WAIT, catalog.PLAN_WAIT, catalog.CPU_WORK_WAIT, catalog.GC_WAIT, catalog.ALLOC_WAIT,
    catalog.SYNC_WAIT, catalog.SILENT_WAIT,
)  # fmt: skip
INFLATED = (Category.LAUNCH_GAP, Category.OTHER, Category.HOST_WAIT)
AS_RECORDED = (catalog.TRACED_STEP, catalog.REPLAYED_STEP, catalog.CLEAN_STEP)


def from_evidence(evidence: Evidence) -> Iterator[Item]:
    """A corrected ledger and step time, next to the replayed ones."""
    ledger = run_ledger(evidence)
    step = evidence.get(catalog.STEP_TIME)
    if step is None or ledger is None:
        return
    if _was_not_traced(evidence, step):
        return
    if not evidence.all(catalog.TRACED_STEP):
        yield Fact(catalog.TRACED_STEP, step.number, step.source, step.scope, step.samples)
    clean = evidence.get(catalog.CLEAN_STEP) or untraced_step(evidence, ledger)
    if clean is None or clean.number <= 0:
        return
    if not evidence.all(catalog.CLEAN_STEP):
        yield clean
    excess = ledger.whole_s - clean.number
    if excess < 0:
        yield from _longer(evidence, ledger, -excess, clean)
        return
    seconds = dict(ledger.seconds)
    for category in INFLATED:
        taken = min(excess, seconds.get(category, 0.0))
        seconds[category] = seconds.get(category, 0.0) - taken
        excess -= taken
    items = list(_corrected_items(ledger, seconds, "corrected to the clean step"))
    corrected = next(item for item in items if isinstance(item, Ledger))
    items += [*_parts_of_host_wait(evidence, ledger, corrected), *_no_longer_than_the_step(evidence, ledger, corrected)]
    # What is left over lies on the device, whose clocks move by a little. More than that is no clock: then the trace has other work.
    clocks = 0 < excess <= DEVICE_NOISE * clean.number
    yield from _all_at_pace(evidence, items, clean.number / (clean.number + excess)) if clocks else items
    if excess > NOISE * clean.number:
        yield Note(
            "the clean step is shorter than the device's own time in the trace: other shapes or clocks?", clean.source
        )


def _was_not_traced(evidence: Evidence, step: Fact) -> bool:
    """The ledger is the recorder's own, of steps that nothing traced: there is nothing to take back."""
    recorded = {fact.source.file for fact in evidence.all(stages.ON_DEVICE)}
    return step.source.file in recorded and evidence.get(catalog.CLEAN_STEP) is None


def _all_at_pace(evidence: Evidence, items: list[Item], pace: float) -> Iterator[Item]:
    """Every second of the step at the pace of the clean steps, accounts and their parts alike; corrected ones as corrected."""
    newest = {item.quantity.name: item for item in items if isinstance(item, Fact)}
    for item in items:
        if isinstance(item, Ledger):
            seconds = {category: s * pace for category, s in item.seconds.items()}
            yield replace(item, seconds=seconds, clean_step_s=sum(seconds.values()), ranges=ranges_of(seconds))
    for quantity in (q for q in vars(catalog).values() if isinstance(q, Quantity) and q not in AS_RECORDED):
        fact = newest.get(quantity.name) or evidence.get(quantity)
        if quantity.unit is Unit.SECOND and fact is not None:
            low, high = (end if end is None else end * pace for end in (fact.low, fact.high))
            yield replace(fact, value=fact.number * pace, low=low, high=high)


def untraced_step(evidence: Evidence, ledger: Ledger) -> Fact | None:
    """The median step of the log or the record of the same run, where most of its steps ran without a profiler.

    It must be possible: not below the device's own work, not above the traced step. Else it counts something else (micro-batches,
    a whole logging interval, validation).
    """
    traced, busy = evidence.value(catalog.TRACED_STEP), evidence.value(catalog.BUSY_TIME, 0.0)
    if ledger.unit != "step" or traced != traced:
        return None
    for series in sorted(evidence.series(run.STEP_TIME), key=lambda s: len(s.values)):
        values = series.values[np.isfinite(series.values)]
        if len(values) < ENOUGH_STEPS + 2 * ledger.samples:
            continue
        usual = float(np.median(values))
        if (1 - DEVICE_NOISE) * busy <= usual <= (1 + SLOWER_THAN_TRACED) * traced:
            return Fact(
                catalog.CLEAN_STEP, usual, series.source, samples=len(values), note="untraced steps of this run"
            )
    return None


def _corrected_items(ledger: Ledger, seconds: dict[Category, float], how: str) -> Iterator[Item]:
    source = Source(ledger.source.file, f"{ledger.source.where}, {how}")
    whole = sum(seconds.values())
    yield Ledger(
        seconds, source, ledger.scope, ledger.samples, ledger.unit, ledger.traced_step_s, whole, ranges_of(seconds)
    )
    yield Fact(catalog.STEP_TIME, whole, source, ledger.scope, ledger.samples)
    gap = seconds.get(Category.LAUNCH_GAP, 0.0)
    yield Fact(catalog.LAUNCH_WAIT, gap, source, ledger.scope, ledger.samples)


def _parts_of_host_wait(evidence: Evidence, traced: Ledger, corrected: Ledger) -> Iterator[Item]:
    """The waits that make up the account shrink with it: a part of the traced step is no part of the shorter clean one."""
    whole, left = traced.seconds.get(Category.HOST_WAIT, 0.0), corrected.seconds.get(Category.HOST_WAIT, 0.0)
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


def _longer(evidence: Evidence, ledger: Ledger, extra: float, clean: Fact) -> Iterator[Item]:
    """Longer than the replay: first what recording was thought to cost and did not, then what the loop hides less."""
    seconds = dict(ledger.seconds)
    gap = seconds.get(Category.LAUNCH_GAP, 0.0)
    taken_off = max((ledger.traced_step_s or ledger.whole_s) - ledger.whole_s, 0.0)
    hidden = max(evidence.value(catalog.LOADER_TIME, 0.0) - evidence.value(catalog.INPUT_WAIT, 0.0), 0.0)
    returned = min(extra, taken_off) if gap > NOISE * ledger.whole_s or not hidden else 0.0
    seconds[Category.LAUNCH_GAP] = gap + returned
    extra -= returned
    shown = min(extra, hidden)
    seconds[Category.INPUT_WAIT] = seconds.get(Category.INPUT_WAIT, 0.0) + shown
    seconds[Category.OTHER] = seconds.get(Category.OTHER, 0.0) + extra - shown
    yield from _corrected_items(ledger, seconds, "stretched to the clean step")
    if shown:
        source = Source(ledger.source.file, f"{ledger.source.where}, stretched to the clean step")
        yield Fact(catalog.INPUT_WAIT, seconds[Category.INPUT_WAIT], source, ledger.scope, ledger.samples)
    if extra > NOISE * ledger.whole_s:
        yield Note(
            "the clean step is longer than the traced one: the clean loop waits for the device more often", clean.source
        )
