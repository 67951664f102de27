"""How evenly tokens spread over experts, and what the exchange of tokens costs."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from stallwise.doctor.measures.collectives import TABLE as COLLECTIVES
from stallwise.evidence.catalog import distributed as q
from stallwise.evidence.evidence import Evidence, Item
from stallwise.evidence.fact import Fact, Source, Table

ORDER = 45
MIN_EXCHANGES = 3
RANK_TABLE = "rank_table"


def from_evidence(evidence: Evidence) -> Iterator[Item]:
    """From tables of ranks where somebody made them, else from the exchanges of the traces."""
    tables = [t for t in evidence.table(RANK_TABLE) if t.meta["tokens"]]
    if tables:
        yield from _from_tables(tables)
        return
    yield from _from_traces(evidence.table(COLLECTIVES))


def _from_tables(tables: list[Table]) -> Iterator[Item]:
    spreads = [_spread(t) for t in tables]
    worst = int(np.argmax([s for s, _ in spreads]))
    spread, busiest = spreads[worst]
    table = tables[worst]
    yield Fact(q.EXPERT_SPREAD, spread, table.source, samples=len(table))
    yield Fact(q.EXPERT_BUSIEST, busiest, table.source)
    took = _typical_time(table)
    if took is not None:
        yield Fact(q.DISPATCH_TIME, took, table.source, samples=len(table))
    even = min(range(len(tables)), key=lambda i: spreads[i][0])
    if even != worst and (balanced := _typical_time(tables[even])) is not None:
        yield Fact(q.DISPATCH_BALANCED, balanced, tables[even].source, samples=len(tables[even]))


def _spread(table: Table) -> tuple[float, str]:
    axis = str(table.meta["axis"])
    tokens = np.asarray(table.columns[table.meta["tokens"][0]], np.float64)
    most = int(np.argmax(tokens))
    return float(tokens.max() / max(tokens.mean(), 1e-12)), f"{axis} {int(table.columns[axis][most])}"


def _typical_time(table: Table) -> float | None:
    times = table.meta["times"]
    return float(np.median(table.columns[times[0]])) if times else None


def _from_traces(tables: list[Table]) -> Iterator[Item]:
    """Bytes received in the same exchange by each rank; of one rank alone, how unevenly it sends."""
    ranked = [t for t in tables if t.scope.rank is not None]
    received = {t.scope.rank: _received(t) for t in ranked}
    received = {rank: values for rank, values in received.items() if len(values) >= MIN_EXCHANGES}
    if len(received) >= 2:
        count = min(len(v) for v in received.values())
        matrix = np.array([v[:count] for v in received.values()])
        mean = matrix.mean(axis=0)
        good = mean > 0
        if good.sum() >= MIN_EXCHANGES:
            spread = np.median(matrix[:, good].max(axis=0) / mean[good])
            totals = matrix.sum(axis=1)
            busiest = list(received)[int(np.argmax(totals))]
            source = Source(f"{len(received)} ranks", f"{count} exchanges")
            yield Fact(q.EXPERT_SPREAD, float(spread), source, samples=count)
            yield Fact(q.EXPERT_BUSIEST, f"rank {busiest}", source)
            return
    for table in tables[:1]:
        uneven = np.asarray(table.columns["split_spread"])
        uneven = uneven[np.isfinite(uneven)]
        if len(uneven) >= MIN_EXCHANGES:
            yield Fact(q.EXPERT_SPREAD, float(np.median(uneven)), table.source, samples=len(uneven))


def _received(table: Table) -> NDArray[np.float64]:
    exchange = np.asarray(table.columns["op"]) == "all-to-all"
    values = np.asarray(table.columns["received_bytes"])[exchange]
    # Exchanges of counts come before those of tokens: only the large ones carry tokens.
    kept: NDArray[np.float64] = values[values > 0.1 * values.max(initial=0.0)]
    return kept
