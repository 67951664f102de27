"""Stage times as tables and people state them, and what the hand-offs of traced ranks take."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from stallwise.doctor.measures._collective_names import HAND_OFFS
from stallwise.doctor.measures.collectives import TABLE as COLLECTIVES
from stallwise.evidence.catalog import distributed as q
from stallwise.evidence.catalog import stated
from stallwise.evidence.catalog import workers as w
from stallwise.evidence.evidence import Evidence, Item
from stallwise.evidence.fact import Fact, Scope, Source, Table
from stallwise.physics.sim.job.faults import Kind, faults_of
from stallwise.physics.sim.job.scheduled import BACKWARD_RATIO, scheduled_job

ORDER = 45
ASSUMED_MICROBATCHES = (
    4  # a stage and step, where nobody says how many: what large jobs use to keep the bubble near a fifth
)
MIN_HAND_OFFS = 4  # a step; fewer are not a pipeline
QUICK = 0.1  # the quickest tenth of equal hand-offs shows the bytes alone; the rest is waiting for the other side


def from_evidence(evidence: Evidence) -> Iterator[Item]:
    """Stages from a table or from stated times; of traces, which are replayed stage by stage, what their hand-offs take."""
    for table in evidence.table("rank_table"):
        axis = str(table.meta["axis"])
        a_stage_each = axis == "rank" and evidence.value(stated.PP) == len(table.columns[axis])
        if (axis == "stage" or a_stage_each) and table.meta["times"]:
            times = dict(_from_table(table, axis))
            yield from _stage_facts(times, table.source)
            yield from _replayed(evidence, times, table)
            return
    stage_times = {f.scope.stage: f.number for f in evidence.all(stated.STAGE_TIME) if f.scope.stage is not None}
    if len(stage_times) >= 2:
        yield from _stage_facts({int(s): t for s, t in stage_times.items()}, evidence.all(stated.STAGE_TIME)[0].source)
        return
    yield from _hand_offs(evidence.table(COLLECTIVES))


def _from_table(table: Table, axis: str) -> Iterator[tuple[int, float]]:
    total = np.sum([table.columns[name] for name in table.meta["times"]], axis=0)
    yield from zip(table.columns[axis].tolist(), total.tolist(), strict=True)


def _replayed(evidence: Evidence, times: dict[int, float], table: Table) -> Iterator[Fact]:
    """What the slowest stage costs a step, and what equal ones would save, by the schedule; and how many layers each has."""
    axis = table.columns[str(table.meta["axis"])].tolist()
    for stage, layers in zip(axis, table.columns.get("layers", np.zeros(0)).tolist(), strict=False):
        yield Fact(w.STAGE_LAYERS, layers, table.source, Scope(stage=stage))
    if len(times) < 2:
        return
    known = evidence.get(stated.MICROBATCHES)
    count = int(known.number) if known else ASSUMED_MICROBATCHES * len(times)
    each = np.array([times[s] for s in sorted(times)])[:, None, None, None] * np.ones((1, count, 1, 1))
    job = scheduled_job(each / (1 + BACKWARD_RATIO), each * BACKWARD_RATIO / (1 + BACKWARD_RATIO))
    found = next((f for f in faults_of(job) if f.kind is Kind.STAGE), None)
    how = f"1F1B with {count} microbatches" + ("" if known else ", assumed")
    if found is not None:
        yield Fact(q.JOB_STEP, job.step_s(), table.source, note=how)
        yield Fact(w.STAGE_COST, found.cost_s, table.source, note=how)
        yield Fact(w.STAGE_BALANCED, found.balanced_s, table.source, note=how)


def _stage_facts(times: dict[int, float], source: Source, samples: int = 1) -> Iterator[Fact]:
    if len(times) < 2:
        return
    values = np.array(list(times.values()))
    slowest = max(times, key=lambda s: times[s])
    yield Fact(q.PIPELINE_STAGES, float(len(times)), source, samples=samples)
    for stage, seconds in sorted(times.items()):
        yield Fact(q.STAGE_COMPUTE, seconds, source, Scope(stage=stage), samples=samples)
    yield Fact(q.STAGE_RATIO, float(values.max() / values.mean()), source, samples=samples)
    yield Fact(q.SLOWEST_STAGE, float(slowest), source, samples=samples)


def _hand_offs(tables: list[Table]) -> Iterator[Fact]:
    """What the bytes alone take, and how many there are: the quickest of equal transfers waited for nobody."""
    found = [one for table in tables if table.scope.rank is not None and (one := _of_rank(table)) is not None]
    if len(found) > 1:
        source = Source(f"{len(found)} ranks", "their hand-offs")
        for quantity, values in zip((q.P2P_TIME, q.P2P_COUNT), zip(*found, strict=True), strict=True):
            yield Fact(quantity, float(np.median(values)), source)


def _of_rank(table: Table) -> tuple[float, float] | None:
    """Seconds and number a step."""
    c = table.columns
    hand = np.isin(c["op"], list(HAND_OFFS))
    steps = max(int(table.meta["steps"]), 1)
    if hand.sum() < MIN_HAND_OFFS * steps:
        return None
    length = np.asarray(c["end_s"] - c["start_s"])
    moving = 0.0
    for size in np.unique(c["size_bytes"][hand]):
        mine = length[hand & (c["size_bytes"] == size)]
        moving += len(mine) * float(np.quantile(mine, QUICK))
    return moving / steps, float(hand.sum()) / steps
