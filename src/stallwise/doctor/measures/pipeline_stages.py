"""Pipelines as traces and tables show them: stage times, hand-offs, and the bubble against the schedule's own."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from stallwise.doctor.measures._collective_names import HAND_OFFS
from stallwise.doctor.measures.collectives import TABLE as COLLECTIVES
from stallwise.evidence.catalog import distributed as q
from stallwise.evidence.catalog import stated
from stallwise.evidence.catalog import workers as w
from stallwise.evidence.evidence import Evidence, Item
from stallwise.evidence.fact import Fact, Scope, Source, Table
from stallwise.evidence.step_time import step_time_s
from stallwise.physics.sim.job.faults import Kind, faults_of
from stallwise.physics.sim.job.scheduled import BACKWARD_RATIO, scheduled_job

ORDER = 45
ASSUMED_MICROBATCHES = (
    4  # a stage and step, where nobody says how many: what large jobs use to keep the bubble near a fifth
)
MIN_HAND_OFFS = 4  # a step; fewer are not a pipeline
QUICK = 0.1  # the quickest tenth of equal hand-offs shows the bytes alone; the rest is waiting for the other side


def from_evidence(evidence: Evidence) -> Iterator[Item]:
    """Stages from a table, from stated times, or from the hand-offs of the ranks."""
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
    replayed = evidence.get(w.WORKERS) is not None
    yield from _from_traces(evidence.table(COLLECTIVES), step_time_s(evidence), replayed=replayed)


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


@dataclass(frozen=True, slots=True)
class _Rank:
    compute_s: float
    step_s: float
    hand_offs: float
    moving_s: float
    first_s: float
    table: Table


def _from_traces(tables: list[Table], answer_step_s: float, *, replayed: bool) -> Iterator[Item]:
    """Of a job that was replayed stage by stage only the hand-offs are left to tell."""
    ranks = [found for table in tables if table.scope.rank is not None and (found := _one(table)) is not None]
    if len(ranks) < 2:
        return
    if replayed:
        source = Source(f"{len(ranks)} ranks", "their hand-offs")
        yield Fact(q.P2P_TIME, float(np.median([r.moving_s for r in ranks])), source)
        yield Fact(q.P2P_COUNT, float(np.median([r.hand_offs for r in ranks])), source)
        return
    stages = _stages(ranks)
    if len(stages) < 2:
        return
    source = Source(f"{len(ranks)} ranks", f"{len(stages)} stages by their hand-offs")
    yield from _stage_facts({s: float(np.median([r.compute_s for r in of])) for s, of in stages.items()}, source)
    step_s = answer_step_s if answer_step_s > 0 else float(np.median([r.step_s for r in ranks]))
    idle = [1 - (r.compute_s + r.moving_s) / r.step_s for r in ranks if r.step_s > 0]
    yield Fact(q.PIPELINE_IDLE, max(float(np.mean(idle)), 0.0), source, samples=len(idle))
    yield Fact(q.JOB_STEP, step_s, source)
    yield Fact(q.P2P_TIME, float(np.median([r.moving_s for r in ranks])), source)
    yield Fact(q.P2P_COUNT, float(np.median([r.hand_offs for r in ranks])), source)
    # The ends of the pipeline hand off in one direction: one send and one receive a micro-batch.
    microbatches = max(round(min(r.hand_offs for r in ranks) / 2), 1)
    yield Fact(q.MICROBATCHES_SEEN, float(microbatches), source)
    ideal = (len(stages) - 1) / (microbatches + len(stages) - 1)
    yield Fact(q.BUBBLE_IDEAL, ideal, source, note="1F1B or GPipe with equal stages")


def _one(table: Table) -> _Rank | None:
    c = table.columns
    hand = np.isin(c["op"], list(HAND_OFFS))
    steps = max(int(table.meta["steps"]), 1)
    if hand.sum() < MIN_HAND_OFFS * steps:
        return None
    begin, end = table.meta["window_s"]
    length = np.asarray(c["end_s"] - c["start_s"])
    moving = 0.0
    for size in np.unique(c["size_bytes"][hand]):
        mine = length[hand & (c["size_bytes"] == size)]
        moving += len(mine) * float(np.quantile(mine, QUICK))
    first = float(table.meta["origin_s"]) + float(c["start_s"][hand][0])
    compute = float(table.meta["compute_s"])
    return _Rank(compute / steps, (end - begin) / steps, float(hand.sum()) / steps, moving / steps, first, table)


def _stages(ranks: list[_Rank]) -> dict[int, list[_Rank]]:
    """By the ranks they talk to where the trace tells; else in order of their first hand-off."""
    peers = {r.table.scope.rank: set(np.asarray(r.table.columns["peer"]).tolist()) - {-1} for r in ranks}
    if all(peers.values()):
        depth = _depths({int(k): v for k, v in peers.items() if k is not None})
        out: dict[int, list[_Rank]] = {}
        for r in ranks:
            out.setdefault(depth[int(r.table.scope.rank or 0)], []).append(r)
        return out
    ordered = sorted(ranks, key=lambda r: r.first_s)
    return {at: [r] for at, r in enumerate(ordered)}


def _depths(peers: dict[int, set[int]]) -> dict[int, int]:
    """Distance from the lowest rank of each chain; with ring-shaped interleaving the ends are neighbours too."""
    depth: dict[int, int] = {}
    for root in sorted(peers):
        if root in depth:
            continue
        depth[root] = 0
        at, seen = root, {root}
        while onward := sorted(p for p in peers.get(at, set()) if p not in seen and p in peers):
            depth[onward[0]] = depth[at] + 1
            at = onward[0]
            seen.add(at)
    return depth
