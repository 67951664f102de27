"""The engine's load over time as facts: who runs, who waits, how full the KV cache is, and what starves whom."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stallwise.evidence.catalog import serving
from stallwise.evidence.evidence import Evidence, Item
from stallwise.evidence.fact import Fact, Scope, Table
from stallwise.evidence.load_phases import normal_phase, worst_phase
from stallwise.evidence.quantity import Quantity

ORDER = 1
KV_FULL_SHARE = 0.95  # engines keep a watermark of one to a few percent and count whole blocks: this is full
STARVED_RATIO = 0.35  # of its usual rate that generation keeps while a prefill runs; chunked prefill keeps more
PREFILLING_SHARE = 0.25  # of the highest prompt rate seen: a sample that is mostly prefill
QUIET_SHARE = 0.05  # of it: a sample that is mostly decode
LONE = 2  # running requests that can still be one huge request and its follower
SLOW_FACTOR = 5.0  # a token that takes five medians is a stall a user sees

Column = NDArray[np.float64]


def from_evidence(evidence: Evidence) -> Iterator[Item]:
    """Facts of each log; without any over time, of a single reading."""
    tables = evidence.table(serving.ENGINE_SAMPLES)
    long = [t for t in tables if len(t) > 1] or tables[-1:]
    for table in long:
        scope = Scope(run=table.source.file) if len(long) > 1 else Scope()
        yield from _facts(table, scope)
    for table in evidence.table(serving.LATENCIES):
        yield from _slow_tokens(table)
    yield from _hits(evidence)


class Samples:
    """The columns of one table, by name, and those samples in which anything ran."""

    def __init__(self, table: Table) -> None:
        get = table.columns
        self.time_s, self.running, self.waiting = get["time_s"], get["running"], get["waiting"]
        self.kv, self.paused, self.hit = get["kv_share"], get["paused"], get["hit_share"]
        self.generated, self.prompted = get["generation_token_per_s"].copy(), get["prompt_token_per_s"]
        # After idle time the first rate is averaged over the idleness: not a rate of anything.
        idle = np.concatenate([[False], (self.running[:-1] == 0) & ~(self.generated[:-1] > 0)])
        self.idle_artifacts = int(np.sum(idle & (self.generated > 0)))
        self.generated[idle] = np.nan
        self.busy = (self.running > 0) | (self.generated > 0)

    def only(self, rows: NDArray[np.bool_]) -> Samples:
        """The same of some samples; rates were cleaned with their neighbours in view."""
        part = Samples.__new__(Samples)
        for name in ("time_s", "running", "waiting", "kv", "paused", "hit", "generated", "prompted", "busy"):
            setattr(part, name, getattr(self, name)[rows])
        part.idle_artifacts = self.idle_artifacts
        return part


def _facts(table: Table, scope: Scope) -> Iterator[Fact]:
    s = Samples(table)

    def fact(quantity: Quantity, value: float, samples: int = len(table)) -> Iterator[Fact]:
        if value == value:
            yield Fact(quantity, float(value), table.source, scope, samples=samples)

    yield from fact(serving.SAMPLES, float(len(table)))
    phase = worst_phase(s.time_s, s.running, s.waiting, s.kv)
    if phase is not None:
        yield Fact(serving.PHASE, phase.named(table.meta.get("start_s")), table.source, scope, samples=phase.count)
        yield from fact(serving.PHASE_SHARE, phase.count / len(table))
        if (normal := normal_phase(s.time_s, s.running, s.waiting, s.kv, phase)) is not None and not scope.run:
            yield Fact(serving.RUNNING, normal.running, table.source, Scope(run="before"), samples=normal.count)
    part = s.only(phase.rows) if phase is not None else s
    yield from fact(serving.IDLE_ARTIFACTS, float(s.idle_artifacts))
    yield from fact(serving.RUNNING, _median(part.running[part.busy]))
    yield from fact(serving.RUNNING_MAX, _max(s.running))
    late = part.waiting if phase is not None else s.waiting[-max(1, len(table) // 4) :]
    yield from fact(serving.WAITING, _median(late))
    queued = part.waiting[part.waiting == part.waiting] > 0
    yield from fact(serving.WAITING_SHARE, _mean(queued) if len(queued) else np.nan)
    yield from fact(serving.WAITING_GROWTH, _slope(s.time_s, s.waiting))
    yield from fact(serving.KV_MAX, _max(s.kv))
    yield from fact(serving.KV_MEDIAN, _median(part.kv[part.busy]))
    yield from fact(serving.KV_QUEUED, _median(part.kv[part.waiting > 0]))
    yield from fact(serving.KV_FULL_SHARE, _mean(s.kv >= KV_FULL_SHARE) if np.any(s.kv == s.kv) else np.nan)
    yield from fact(serving.PAUSED, _mean(s.paused[s.busy]))
    yield from fact(serving.PINNED_AT, _pinned(part))
    yield from fact(serving.RUNNING_LOST, _running_lost(s))
    made = s.generated > 0
    quiet = made & ~_prefilling(s)
    quiet = quiet if quiet.any() else made  # an even mixture has no quiet samples
    decoding = s.generated[quiet]
    yield from fact(serving.GENERATION_RATE, _median(decoding), len(decoding))
    yield from fact(serving.GENERATION_MAX, _max(s.generated))
    alone = s.generated / np.where(s.running > 0, s.running, np.nan)
    yield from fact(serving.PER_REQUEST_RATE, _median(alone[quiet]))
    yield from fact(serving.FULL_RATE_RATIO, _full_rate_ratio(s, alone))
    yield from fact(serving.PREFILL_RATE, _median(s.prompted[s.prompted > 0]))
    yield from fact(serving.LONE_PREFILL_SHARE, _lone_prefill(s))
    yield from fact(serving.STUCK_SAMPLES, float(_stuck(s)))
    for quantity, value in (*_prefill_stalls(s).items(), *_iterations(table, s).items()):
        yield from fact(quantity, value)
    if np.any(s.hit == s.hit):
        yield from fact(serving.HIT_SHARE, float(s.hit[s.hit == s.hit][-1]))


def _prefilling(s: Samples) -> Any:
    most = _max(s.prompted)
    return (s.prompted >= PREFILLING_SHARE * most) & (s.prompted > 0) if most > 0 else np.zeros(len(s.running), bool)


def _pinned(s: Samples) -> float:
    """The one running count that was ever seen beside a queue; NaN when it moved."""
    queued = s.running[(s.waiting > 0) & (s.running == s.running)]
    return float(queued[0]) if len(queued) >= 3 and np.ptp(queued) == 0 else float("nan")


def _running_lost(s: Samples) -> float:
    """How far the running count fell while the cache was full and the queue rose by about as many."""
    full = np.flatnonzero((s.kv >= KV_FULL_SHARE) & (s.running == s.running) & (s.waiting == s.waiting))
    if len(full) < 2:
        return float("nan")
    running, waiting = s.running[full], s.waiting[full]
    peak = int(np.argmax(running))
    low = peak + int(np.argmin(running[peak:]))
    fell, rose = running[peak] - running[low], waiting[low] - waiting[peak]
    return float(min(fell, rose)) if fell > 0 and rose > 0 else 0.0


def _full_rate_ratio(s: Samples, alone: Column) -> float:
    """Tokens of one request with the cache full over before it was."""
    full = alone[(s.kv >= KV_FULL_SHARE) & (s.generated > 0)]
    before = alone[(s.kv < KV_FULL_SHARE) & (s.kv > 0) & (s.generated > 0)]
    usual = _median(before) if len(full) >= 2 and len(before) >= 2 else 0.0
    return _median(full) / usual if usual > 0 else float("nan")


def _prefill_stalls(s: Samples) -> dict[Quantity, float]:
    """Samples in which prompts flow and running decodes hardly move, against samples without prompts."""
    most = _max(s.prompted)
    quiet = (s.prompted <= QUIET_SHARE * most) & (s.generated > 0) & (s.running >= 2)
    if not most > 0 or quiet.sum() < 2:
        return {}
    usual = _median(s.generated[quiet])
    crowd = max(2.0, 0.5 * _median(s.running[quiet]))  # a lone request's own prompt stops nobody
    mixed = _prefilling(s) & (s.running >= crowd) & (s.generated == s.generated) & ~(s.kv >= KV_FULL_SHARE)
    starved = mixed & (s.generated < STARVED_RATIO * usual)
    starved[0] = False
    starved[1:] &= s.running[:-1] >= crowd  # the first prompts have no decodes to starve
    if not starved.any():
        return {serving.PREFILL_STALLS: 0.0}
    return {
        serving.PREFILL_STALLS: float(starved.sum()),
        serving.PREFILL_STALL_RATIO: _median(s.generated[starved]) / usual,
        serving.PREFILL_STALL_SHARE: float(starved.mean()),
    }


def _iterations(table: Table, s: Samples) -> dict[Quantity, float]:
    """Where iterations are timed one by one: with and without prompts in them, and the GPU's part."""
    took, device = table.columns["iteration_s"], table.columns["device_s"]
    timed = (took > 0) & (s.prompted == s.prompted)
    found = {serving.DEVICE_SHARE: _median(np.minimum(device / took, 1.0)[(took > 0) & (device > 0)])}
    with_prompts, without = timed & (s.prompted > 0), timed & (s.prompted == 0) & (s.generated > 0)
    if with_prompts.sum() < 3 or without.sum() < 3:
        return found
    return found | {
        serving.ITERATION_PREFILL: _median(took[with_prompts]),
        serving.ITERATION_DECODE: _median(took[without]),
        serving.ITERATION_PREFILL_SHARE: float(took[with_prompts].sum() / took[timed].sum()),
    }


def _lone_prefill(s: Samples) -> float:
    """Samples in which one or two requests hold the engine, produce next to nothing, and others wait."""
    known = (s.running == s.running) & (s.waiting == s.waiting)
    held = known & (s.running <= LONE) & (s.waiting > LONE) & ~(s.generated > 1.0) & ~(s.kv >= KV_FULL_SHARE)
    return float(held.mean()) if known.any() else float("nan")


def _stuck(s: Samples) -> int:
    """How many samples at the end show requests that run and no token, neither read nor made."""
    still = (s.running > 0) & (s.generated == 0) & ~(s.prompted > 0)
    moves = np.flatnonzero(~still)
    return len(still) - 1 - int(moves[-1]) if len(moves) else len(still)


def _slow_tokens(table: Table) -> Iterator[Fact]:
    """From a histogram of token times: the tail that no median shows."""
    edges, counts = table.columns["edge_s"], table.columns["count"]
    total = counts.sum()
    if not 0 < total < np.inf:
        return
    middle = float(edges[int(np.searchsorted(np.cumsum(counts), 0.5 * total))])
    finite = np.where(np.isfinite(edges), edges, np.nan)
    lower = np.concatenate([[0.0], edges[:-1]])
    slow = lower >= SLOW_FACTOR * middle if np.isfinite(middle) else np.zeros(len(edges), bool)
    share = float(counts[slow].sum() / total)
    yield Fact(serving.SLOW_TOKEN_SHARE, share, table.source, samples=int(total))
    if share > 0:
        middles = np.where(np.isfinite(finite), (lower + finite) / 2, lower)
        yield Fact(serving.SLOW_TOKEN_TIME, float(np.average(middles[slow], weights=counts[slow])), table.source)


def _hits(evidence: Evidence) -> Iterator[Fact]:
    """Counters beat a rate that an engine averages over a window of its own choosing."""
    queries, hits = evidence.get(serving.PREFIX_QUERIES), evidence.get(serving.PREFIX_HITS)
    if queries and hits and queries.number > 0:
        yield Fact(serving.HIT_SHARE, hits.number / queries.number, hits.source, samples=int(queries.number))


def _quietly(function: Any, values: Any) -> float:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # all NaN: the answer is NaN
        return float(function(values)) if len(values) else float("nan")


def _median(values: Any) -> float:
    return _quietly(np.nanmedian, values)


def _max(values: Any) -> float:
    return _quietly(np.nanmax, values)


def _mean(values: Any) -> float:
    return _quietly(np.nanmean, values)


def _slope(x: Column, y: Column) -> float:
    good = np.isfinite(x) & np.isfinite(y)
    if good.sum() < 3 or np.ptp(x[good]) <= 0:
        return float("nan")
    return float(np.polyfit(x[good], y[good], 1)[0])
