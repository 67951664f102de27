"""Stragglers on one clock: who is late, since when, how often, what it costs the job, and why."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stallwise.doctor.measures._late_ranks import NOISE_IN_ERRORS, Late, even_gain, latest_set, waits
from stallwise.doctor.measures._late_reason import reason
from stallwise.doctor.measures.clocks import TABLE as MATCHED
from stallwise.doctor.measures.collectives import KERNEL_TABLE
from stallwise.doctor.measures.collectives import TABLE as COLLECTIVES
from stallwise.evidence.catalog import distributed as q
from stallwise.evidence.catalog import workers as w
from stallwise.evidence.evidence import Evidence, Item
from stallwise.evidence.fact import WHOLE, Fact, Scope, Source, Table
from stallwise.evidence.quantity import Quantity
from stallwise.evidence.step_time import step_time_s

ORDER = 50
ENOUGH_STEPS = 3  # fewer steps tell nothing of how often; collectives are counted then
MOSTLY = 0.8
Floats = NDArray[np.float64]


def from_evidence(evidence: Evidence) -> Iterator[Item]:
    """Facts of the whole job; where all its operations were replayed, that says who is late."""
    if evidence.get(w.WORKERS) is not None:
        return
    for table in evidence.table(MATCHED)[:1]:
        yield from _judge(evidence, table)


def _judge(evidence: Evidence, table: Table) -> Iterator[Item]:
    c, meta = table.columns, table.meta
    linked = np.array(meta["linked"], bool)
    shared = c["together"] & (np.isfinite(c["start_s"][:, linked]).sum(axis=1) >= 2)
    if not shared.any() or linked.sum() < 2:
        return
    arrival, end = c["start_s"][shared][:, linked], c["end_s"][shared][:, linked]
    exposed = c["exposed_s"][shared][:, linked]
    step = c["step"][shared]
    error_s = float(meta["error_s"])
    steps = max(len(np.unique(step[step >= 0])), 1)
    span_s = float(np.nanmax(end) - np.nanmin(arrival))
    answer_step_s = step_time_s(evidence)  # the step of the answer; without a ledger that of the common clock
    step_s = answer_step_s if answer_step_s > 0 else _step_time(arrival, step, span_s)

    def fact(quantity: Quantity, value: float | str, samples: int = 1, scope: Scope = WHOLE, **more: Any) -> Fact:
        return Fact(quantity, value, table.source, scope, samples=samples, **more)

    waiting = np.minimum(waits(arrival, end), exposed)
    count = len(arrival)
    yield fact(q.JOB_STEP, step_s, steps)
    yield fact(q.WAIT_FOR_PEERS, _per_rank(waiting) / steps, count)
    yield fact(q.MOVING_BYTES, _per_rank(exposed - waiting) / steps, count)
    skew = np.nanmax(arrival, axis=1) - np.nanmedian(arrival, axis=1)
    yield fact(q.ARRIVAL_SKEW, float(np.median(skew)), count)
    yield from _unseen(fact, table, shared, linked, steps)
    late = latest_set(arrival, exposed, error_s)
    if late is None:
        return
    ranks = np.array(meta["ranks"])[linked][late.members]
    scope = Scope(rank=int(ranks[0])) if len(ranks) == 1 else Scope()
    doubt = error_s * float(np.count_nonzero(late.saved)) / steps
    cost = late.cost_s / steps
    yield fact(q.STRAGGLER, _words(ranks, np.array(meta["hosts"])[linked], late.members), len(ranks), scope)
    yield fact(q.STRAGGLER_COST, cost, count, low=max(cost - doubt, 0.0), high=cost + doubt)
    yield fact(q.EVEN_GAIN, float(even_gain(arrival, exposed, error_s).sum()) / steps, count)
    yield fact(q.STRAGGLER_EXPLAINS, late.explains, count)
    yield from _when(fact, late, step, step_s, error_s)
    yield fact(q.CRITICAL_RANK_SHARE, _share_of_path(arrival, end, late.members), count)
    yield from _why(fact, evidence, table, np.flatnonzero(linked), late, shared)


def _step_time(arrival: Floats, step: NDArray[np.int64], span_s: float) -> float:
    """From the first collective of a step to that of the next; the whole span where steps are not marked."""
    numbers = np.unique(step[step >= 0])
    if len(numbers) < 2:
        return span_s
    begin = np.array([np.nanmin(arrival[step == n]) for n in numbers])
    return float(np.median(np.diff(begin) / np.diff(numbers)))


def _per_rank(values: Floats) -> float:
    return float(np.nansum(values) / values.shape[1])


def _words(ranks: NDArray[np.int64], hosts: NDArray[np.str_], members: NDArray[np.intp]) -> str:
    numbers = ranks.tolist()
    if len(numbers) == 1:
        return f"rank {numbers[0]}"
    whole = numbers == list(range(numbers[0], numbers[-1] + 1))
    words = f"ranks {numbers[0]}-{numbers[-1]}" if whole else "ranks " + ", ".join(map(str, numbers[:8]))
    host = set(hosts[members].tolist())
    alone = len(host) == 1 and "" not in host and int(np.isin(hosts, list(host)).sum()) == len(numbers) < len(hosts)
    return f"{words} (all of {host.pop()})" if alone else words


def _when(fact: Any, late: Late, step: NDArray[np.int64], step_s: float, error_s: float) -> Iterator[Fact]:
    numbers = np.unique(step[step >= 0])
    if len(numbers) < ENOUGH_STEPS:
        counted = late.possible > 0
        often = float(np.mean(late.saved[counted] > 0)) if counted.any() else 0.0
        yield fact(q.STRAGGLER_OFTEN, often, int(counted.sum()), note="collectives")
        return
    by_step = np.array([late.saved[step == n].sum() for n in numbers])
    is_late = by_step > max(NOISE_IN_ERRORS * error_s, 0.005 * step_s)
    yield fact(q.STRAGGLER_OFTEN, float(is_late.mean()), len(numbers), note="steps")
    for at, number in enumerate(numbers.tolist()):
        if is_late[at] and is_late[at:].mean() >= MOSTLY:
            if at > 0 and is_late[:at].mean() <= 1 - MOSTLY:
                yield fact(q.STRAGGLER_SINCE, float(number), len(numbers))
            return


def _share_of_path(arrival: Floats, end: Floats, members: NDArray[np.intp]) -> float:
    last = np.nanargmax(np.where(np.isfinite(arrival), arrival, -np.inf), axis=1)
    done = np.maximum.accumulate(np.nanmax(end, axis=1))
    length = np.maximum(np.diff(done, prepend=np.nanmin(arrival)), 0.0)
    return float(length[np.isin(last, members)].sum() / max(length.sum(), 1e-12))


def _unseen(
    fact: Any, table: Table, shared: NDArray[np.bool_], linked: NDArray[np.bool_], steps: int
) -> Iterator[Fact]:
    """Everybody here waits, so the late one is not here: the quickest rank's time beyond the usual for that size."""
    c = table.columns
    start, end = c["start_s"][shared][:, linked], c["end_s"][shared][:, linked]
    seen = np.isfinite(start).sum(axis=1)
    partial = c["expected"][shared] > seen
    if not partial.any():
        return
    quickest = np.nanmin(end - start, axis=1)
    key = np.char.add(np.char.add(c["op"][shared], c["group"][shared]), np.char.mod("%d", c["size_bytes"][shared]))
    beyond = np.zeros(len(quickest))
    for word in np.unique(key[partial]):
        mine = (key == word) & partial
        if mine.sum() >= ENOUGH_STEPS:
            beyond[mine] = quickest[mine] - np.quantile(quickest[mine], 0.1)
    beyond[beyond <= NOISE_IN_ERRORS * float(table.meta["error_s"])] = 0.0
    exposed = np.nanmedian(np.where(np.isfinite(start), c["exposed_s"][shared][:, linked], np.nan), axis=1)
    yield fact(q.UNSEEN_WAIT, float(np.minimum(beyond, exposed).sum()) / steps, int(partial.sum()))


def _why(
    fact: Any, evidence: Evidence, table: Table, linked: NDArray[np.intp], late: Late, shared: NDArray[np.bool_]
) -> Iterator[Fact]:
    own = {(t.scope.rank, t.source.file): t for t in evidence.table(COLLECTIVES)}
    kernels = {(t.scope.rank, t.source.file): t for t in evidence.table(KERNEL_TABLE)}
    places = [(table.meta["ranks"][i], table.meta["sources"][i]) for i in linked.tolist()]
    tables = [own[p] for p in places]
    fences = _fences(table, shared, linked)
    if fences is None:
        return
    found = reason(tables, late.members, fences, late.cost_s, [kernels.get(p) for p in places])
    if found is None or found.share <= 0:
        return
    source = Source(places[int(late.members[0])][1])
    yield Fact(q.STRAGGLER_CAUSE, found.kind, source)
    yield Fact(q.STRAGGLER_CAUSE_SHARE, found.share, source)
    yield Fact(q.STRAGGLER_DETAIL, found.detail, source)
    if found.slowdown == found.slowdown:
        yield Fact(q.KERNEL_SLOWDOWN, found.slowdown, source)


def _fences(table: Table, shared: NDArray[np.bool_], linked: NDArray[np.intp]) -> list[tuple[int, int]] | None:
    """Places in each rank's own table of the first and the last collective that all these ranks share."""
    rows = table.columns["row"][shared][:, linked]
    wide = np.flatnonzero((rows >= 0).all(axis=1))
    if len(wide) < 2:
        return None
    return list(zip(rows[wide[0]].tolist(), rows[wide[-1]].tolist(), strict=True))
