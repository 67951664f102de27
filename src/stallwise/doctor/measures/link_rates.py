"""The same link at different moments: does it slow down while a neighbour draws on it?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from stallwise.doctor.measures.clocks import TABLE as MATCHED
from stallwise.evidence.catalog import distributed as q
from stallwise.evidence.evidence import Evidence, Item
from stallwise.evidence.fact import Fact, Source

ORDER = 55
SAME_MOMENT_S = 60.0  # transfers of usual length that begin within a minute overlap
MIN_REPEATS = 10
WORTH_BYTES = 1e6  # smaller messages show latency, not the link


def from_evidence(evidence: Evidence) -> Iterator[Item]:
    """Rates of measured links, and the spread of equal collectives."""
    yield from _measured(evidence)
    yield from _spread(evidence)


@dataclass(frozen=True, slots=True)
class _Run:
    client: str
    node: str
    target: str
    time_s: float
    rate: float
    where: Source


def _measured(evidence: Evidence) -> Iterator[Item]:
    keys = ("source", "node", "target", "time_s", "rate_byte_per_s")
    runs = [
        _Run(str(s), str(n), str(t), float(m), float(r), table.source)
        for table in evidence.table("link_rates")
        for s, n, t, m, r in zip(*(table.columns[k] for k in keys), strict=True)
    ]
    pairs: dict[tuple[str, str], list[_Run]] = {}
    for run in runs:
        pairs.setdefault((run.client or run.node, run.target), []).append(run)
    repeated = [sorted(of, key=lambda run: run.time_s) for of in pairs.values() if len(of) > 1]
    if not repeated:
        return
    best, low = min((_fall(of) for of in repeated), key=lambda pair: pair[1].rate / pair[0].rate)
    yield Fact(q.LINK_RATE_BEFORE, best.rate, best.where)
    yield Fact(q.LINK_RATE_NOW, low.rate, low.where)
    beside = [
        run
        for run in runs
        if run.client != low.client
        and (run.target == low.target or (run.node and run.node == low.node))
        and abs(run.time_s - low.time_s) <= SAME_MOMENT_S
    ]
    if beside:
        drawn = max(beside, key=lambda run: run.rate)
        yield Fact(q.NEIGHBOUR_RATE, drawn.rate, drawn.where)


def _fall(runs: list[_Run]) -> tuple[_Run, _Run]:
    """The quickest run and the slowest one after it."""
    at = max(range(len(runs)), key=lambda i: runs[i].rate)
    return runs[at], min(runs[at:], key=lambda run: run.rate)


def _spread(evidence: Evidence) -> Iterator[Item]:
    """Equal collectives, waiting removed: the last rank to come sees only the bytes move."""
    for table in evidence.table(MATCHED)[:1]:
        c = table.columns
        large = c["together"] & (c["size_bytes"] >= WORTH_BYTES)
        if not large.any():
            return
        seen = np.isfinite(c["start_s"][large]).sum(axis=1) >= c["expected"][large]
        moved = np.nanmin(c["end_s"][large] - c["start_s"][large], axis=1)
        key = np.char.add(np.char.add(c["op"][large], c["group"][large]), np.char.mod("%d", c["size_bytes"][large]))
        for word in np.unique(key[seen]):
            mine = moved[(key == word) & seen]
            if len(mine) >= MIN_REPEATS:
                ratio = float(np.quantile(mine, 0.9) / max(np.quantile(mine, 0.1), 1e-9))
                yield Fact(q.BANDWIDTH_SPREAD, ratio, table.source, samples=len(mine))
