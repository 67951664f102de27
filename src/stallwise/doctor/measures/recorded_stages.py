"""From the recorder's stage times to a ledger and the facts of a step, where no device trace tells them better.

On a GPU the stages are timed by events in the stream, so that each second of the device is in one stage: the wait for a batch that
the stage shows is the part that nothing hid. On a CPU host time is all there is, and nothing hides.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from stallwise.evidence.catalog import hardware, job, run, stages
from stallwise.evidence.catalog import step as s
from stallwise.evidence.evidence import Evidence, Item
from stallwise.evidence.fact import WHOLE, Fact, Scope, Series, Source, Table
from stallwise.evidence.ledger import Category, Ledger
from stallwise.evidence.quantity import Quantity
from stallwise.evidence.user_lines import BESIDE, COMPILING, COMPUTES, FEWEST, KIND, LOADS, line_of_most

ORDER = -5  # before what builds on the facts of a step
EXPLAINED = 0.8  # of the silence: a name for less of it would be a guess
MOSTLY = 0.5  # of the samples outside of every stage: the line that holds them
JITTER_SIGMAS = 3.0
NORMAL_SIGMA = 1.4826  # from the median absolute deviation to a standard deviation
IDLE = 0.5  # of the time that a kernel runs: above, what holds the host may cost nothing
CATEGORY_OF = {
    BESIDE: Category.HOST_WAIT,
    COMPILING: Category.HOST_WAIT,
    LOADS: Category.INPUT_WAIT,
    "checkpoint": Category.CHECKPOINT,
    "gradient_sync": Category.COMMUNICATION,
}
COMPUTE = (stages.FORWARD, stages.BACKWARD, stages.OPTIMIZER, stages.REPLAY)


def from_evidence(evidence: Evidence) -> Iterator[Item]:
    """One ledger per recorded rank."""
    recorded = [
        series
        for series in evidence.series(run.STEP_TIME)
        if evidence.get(stages.ON_DEVICE, rank=series.scope.rank) is not None and len(series.values)
    ]
    if any(ledger.samples and ledger.seconds.get(Category.COMPUTE, 0.0) > 0 for ledger in evidence.ledgers):
        yield from _clean_step(evidence)
        yield from _names_for_silence(evidence, recorded)
        return  # a trace has told the rest already, and finer
    for series in recorded:
        yield from _rank(evidence, series, WHOLE if len(recorded) == 1 else series.scope)
    if not evidence.series(run.STEP_TIME) and evidence.value(hardware.GPU_UTILISATION, 0.0) < IDLE:
        tables = [t for t in evidence.table(KIND) if t.meta.get("looked_s") and sum(t.meta["total"].values()) >= FEWEST]
        yield from _looked_at(max(tables, key=lambda t: sum(t.meta["total"].values()))) if tables else ()


def _looked_at(table: Table) -> Iterator[Item]:
    """Of a process without a busy device that was looked at from outside: its time by the stages its stacks were in."""
    looked_s, total = float(table.meta["looked_s"]), table.meta["total"]
    part_s = {stage: looked_s * count / sum(total.values()) for stage, count in total.items()}
    in_category = Counter[Category]()
    for stage, seconds in part_s.items():
        in_category[CATEGORY_OF.get(stage, Category.COMPUTE)] += seconds
    yield Ledger(dict(in_category), table.source, WHOLE, 1, "window")

    def fact(quantity: Quantity, value: float | str) -> Fact:
        return Fact(quantity, value, table.source, samples=1)

    yield fact(stages.ON_DEVICE, 0.0)
    yield fact(s.STEP_TIME, looked_s)
    yield fact(s.STEP_COUNT, 1.0)
    yield fact(s.STEP_UNIT, "window")
    for quantity, category in (
        (s.INPUT_WAIT, Category.INPUT_WAIT), (s.LOADER_TIME, Category.INPUT_WAIT), (s.CHECKPOINT_WAIT, Category.CHECKPOINT),
        (s.SILENT_WAIT, Category.HOST_WAIT), (s.BUSY_TIME, Category.COMPUTE),
    ):  # fmt: skip
        yield fact(quantity, in_category[category])
        if in_category[category]:
            yield Series(quantity, np.zeros(1), np.array([in_category[category]]), table.source)
    line = line_of_most([table], (BESIDE,))
    if line is not None:
        yield fact(s.SILENT_PLACE, str(line))


def _clean_step(evidence: Evidence) -> Iterator[Item]:
    """Untraced steps of the same run: the step that the user has, where nobody stated one."""
    untraced = evidence.all(job.UNTRACED_STEP)
    if untraced and evidence.get(s.CLEAN_STEP) is None:
        slowest = max(
            untraced, key=lambda fact: fact.number
        )  # ranks wait for one another: the job's step is the slowest's
        yield replace(slowest, quantity=s.CLEAN_STEP, scope=WHOLE)


def _names_for_silence(evidence: Evidence, recorded: list[Series]) -> Iterator[Item]:
    """A trace shows that the host was silent; the record knows when it collected garbage or wrote a checkpoint then."""
    silent_s = evidence.value(s.SILENT_WAIT, 0.0)
    for steps in recorded[:1]:
        source, count = Source(steps.source.file), len(steps.values)
        collecting = float(_values(evidence, stages.COLLECTION, steps.scope, count).mean())
        saving = _values(evidence, stages.CHECKPOINT, steps.scope, count)
        if collecting > EXPLAINED * silent_s > 0:
            yield Fact(s.SILENT_REASON, "garbage collection", source, samples=count)
        elif saving.any() and silent_s > 0:
            yield Fact(s.CHECKPOINT_WAIT, float(saving.mean()), source, samples=count)
            yield Series(s.CHECKPOINT_WAIT, steps.x, saving, source)


def _rank(evidence: Evidence, steps: Series, scope: Scope) -> Iterator[Item]:
    source = Source(steps.source.file, f"steps {steps.x[0]:.0f}-{steps.x[-1]:.0f}")
    by_stage = {q.name: _values(evidence, q, steps.scope, len(steps.values)) for q in stages.STAGE_OF.values()}
    on_device = bool(evidence.value(stages.ON_DEVICE, rank=steps.scope.rank))
    compiling = np.zeros(len(steps.values))
    if not on_device:
        compiling = _host_work_out(by_stage, evidence, steps.scope)
        for quantity in (stages.BATCH_WAIT, stages.SIDE):
            by_stage[quantity.name] = _above_jitter(by_stage[quantity.name], by_stage)
    wait, copy = by_stage[stages.BATCH_WAIT.name], by_stage[stages.H2D.name]
    compute = sum((by_stage[q.name] for q in COMPUTE), np.zeros(len(steps.values)))
    saving, evaluating = by_stage[stages.CHECKPOINT.name], by_stage[stages.EVALUATION.name]
    sync = by_stage[stages.GRADIENT_SYNC.name]
    collecting = np.minimum(by_stage[stages.COLLECTION.name], by_stage[stages.SIDE.name])
    silent = np.maximum(by_stage[stages.SIDE.name] - saving - evaluating - collecting, 0.0)
    categories = {
        Category.COMPUTE: compute + evaluating,
        Category.INPUT_WAIT: wait,
        Category.COPY: copy,
        Category.COMMUNICATION: sync,
        Category.CHECKPOINT: saving,
        # On the device's clock, what no stage covers may be work that was launched between two stages.
        Category.HOST_WAIT: collecting if on_device else collecting + silent + compiling,
    }
    seconds = {category: float(values.mean()) for category, values in categories.items()}
    # Device events and the host's clock differ by a little; what is left over is other, and never negative.
    seconds[Category.OTHER] = max(float(steps.values.mean()) - sum(seconds.values()), 0.0)
    if on_device and silent.mean() > seconds[Category.OTHER]:
        # A host that runs ahead waits in few steps for what all of them queued: only the sum of many steps is the device's.
        silent = silent * (seconds[Category.OTHER] / float(silent.mean()))
    count = len(steps.values)
    yield Ledger(seconds, source, scope, count)

    def fact(quantity: Quantity, value: float | str) -> Fact:
        return Fact(quantity, value, source, scope, count)

    yield fact(s.STEP_TIME, float(steps.values.mean()))
    yield fact(s.STEP_MEDIAN, float(np.median(steps.values)))
    yield fact(s.STEP_COUNT, float(count))
    yield fact(s.STEP_UNIT, "step")
    yield fact(s.BUSY_TIME, float((compute + evaluating).mean()))
    yield fact(s.LOADER_TIME, float(wait.mean()))
    yield fact(s.EVALUATION_TIME, float(evaluating.mean()))
    yield fact(s.MICROBATCHES, float(by_stage[stages.BACKWARD.name].any()))
    for quantity, values in (
        (s.INPUT_WAIT, wait),
        (s.CHECKPOINT_WAIT, saving),
        (s.GC_WAIT, collecting),
        (s.COMPILE_WAIT, compiling),
        (s.SILENT_WAIT, silent),
    ):
        yield fact(quantity, float(values.mean()))
        if values.any():
            yield Series(quantity, steps.x, values, source, scope)
    line = evidence.get(stages.SIDE_LINE, rank=steps.scope.rank)
    if line is not None and line.note and float(line.note) >= MOSTLY:
        yield replace(line, quantity=s.SILENT_PLACE, scope=scope)


def _host_work_out(by_stage: dict[str, NDArray[np.float64]], evidence: Evidence, scope: Scope) -> NDArray[np.float64]:
    """What the host does inside a stage without the framework (a file read in the middle of a forward pass) is none of the stage's.

    Returned is what it compiles, by step.
    """
    tables = [t for t in evidence.table(KIND) if t.scope == scope]
    found = np.zeros(len(by_stage[stages.SIDE.name]))
    for stage in (*COMPUTES, BESIDE):
        name = (stages.STAGE_OF[stage] if stage else stages.SIDE).name
        host, compiles = (sum(t.meta[kind].get(stage, 0) for t in tables) for kind in ("host", COMPILING))
        looks = host + compiles + sum(t.meta["total"].get(stage, 0) for t in tables)
        whole = by_stage[name]
        if compiles >= FEWEST:
            found = found + whole * (compiles / looks)
            by_stage[name] = by_stage[name] - whole * (compiles / looks)
        if host >= FEWEST:
            by_stage[name] = by_stage[name] - whole * (host / looks)
            by_stage[stages.SIDE.name] = by_stage[stages.SIDE.name] + whole * (host / looks)
    return found


def _above_jitter(values: NDArray[np.float64], by_stage: dict[str, NDArray[np.float64]]) -> NDArray[np.float64]:
    """Bursts that the compute stages show as well are the machine's own jitter (other processes), not this stage's."""
    compute = sum((by_stage[q.name] for q in COMPUTE), np.zeros(len(values)))
    usual = float(np.median(values))
    if _excess_s(values) <= _excess_s(compute):  # what others steal falls on whatever runs
        return np.minimum(values, usual)
    jitter_s = NORMAL_SIGMA * float(np.median(np.abs(compute - np.median(compute))))
    noise = values - usual < JITTER_SIGMAS * jitter_s
    return np.where(noise, np.minimum(values, usual), values)


def _excess_s(values: NDArray[np.float64]) -> float:
    """Seconds above the usual, over all steps."""
    return float(np.maximum(values - np.median(values), 0.0).sum())


def _values(evidence: Evidence, quantity: Quantity, scope: Scope, count: int) -> NDArray[np.float64]:
    for series in evidence.series(quantity):
        if series.scope == scope and len(series.values) == count:
            return series.values
    return np.zeros(count)
