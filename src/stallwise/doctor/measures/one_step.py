"""One step time: what a replay or a median says of a step is brought to the step that the ledger sums to."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from stallwise.doctor.measures._carried_over import carried_over
from stallwise.doctor.measures.replayed_together import TABLE
from stallwise.evidence.catalog import gains
from stallwise.evidence.catalog import step as catalog
from stallwise.evidence.evidence import Evidence, Item
from stallwise.evidence.fact import Fact, Table
from stallwise.evidence.step_time import STEPS, run_ledger

ORDER = 7  # after the clean step
SAME = 1e-6  # relative: rounding


def from_evidence(evidence: Evidence) -> Iterator[Item]:
    """Step times, gains and what-if tables of every scope that has a ledger."""
    yield from list(_step_times(evidence))
    yield from list(_gains(evidence))
    yield from [_together(evidence, table) for table in evidence.table(TABLE)]


def _step_times(evidence: Evidence) -> Iterator[Fact]:
    for scope in dict.fromkeys(x.scope for x in evidence.ledgers):
        ledger = run_ledger(evidence, scope)
        step_times = [f for f in evidence.all(catalog.STEP_TIME) if f.scope == scope]
        if ledger is None or ledger.unit not in STEPS or not step_times or not ledger.whole_s > 0:
            continue
        if abs(step_times[-1].number / ledger.whole_s - 1.0) > SAME:
            yield replace(step_times[-1], value=ledger.whole_s, source=ledger.source, low=None, high=None)


def _gains(evidence: Evidence) -> Iterator[Fact]:
    """What changes win of the step as told: facts of the replay, at the pace of the run's own host."""
    over = carried_over(evidence, evidence.value(catalog.REPLAYED_STEP, 0.0))
    if over.pace == 1.0:
        return
    for name, quantity in gains.OF_CHANGE.items():
        fact = evidence.get(quantity)
        if fact is None or not fact.number > 0:
            continue
        won, low, high = (over.won_s(s, {name: s}) for s in (fact.number, fact.low or 0.0, fact.high or fact.number))
        yield replace(fact, value=won, low=min(low, won), high=max(high, won))


def _together(evidence: Evidence, table: Table) -> Table:
    """The same combinations, as steps of the length that is told."""
    names, after = list(table.meta["meanings"]), table.columns["step_s"]
    rows = np.stack([table.columns[name] for name in names], axis=1)
    over = carried_over(evidence, float(after[0]), table.scope)
    alone = {name: float(after[0] - after[_row(rows, at)]) for at, name in enumerate(names)}
    steps = [
        over.step_s - over.won_s(float(after[0] - s), {n: alone[n] for n, part in zip(names, parts, strict=True) if part > 0})
        for s, parts in zip(after.tolist(), rows.tolist(), strict=True)
    ]  # fmt: skip
    return replace(table, columns={**table.columns, "step_s": np.array(steps)})


def _row(rows: np.ndarray[tuple[int, int], np.dtype[np.float64]], at: int) -> int:
    """Where this change alone is made wholly."""
    return int(np.flatnonzero((rows[:, at] == rows.max()) & (rows.sum(axis=1) == rows.max()))[0])
