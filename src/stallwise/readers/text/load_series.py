"""A service's table over time (of a dashboard, of a load generator): samples of the engine, and facts of its phases.

Medians over hours of calm hide the storm: what the worst lasting phase shows is the run in question, the calm one is `before`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, TypeAlias

from stallwise.evidence.catalog import serving
from stallwise.evidence.engine_samples import SAMPLE_COLUMNS
from stallwise.evidence.evidence import Item
from stallwise.evidence.fact import WHOLE, Fact, Scope, Source, Table
from stallwise.evidence.load_phases import normal_phase, worst_phase
from stallwise.evidence.reading import Rows
from stallwise.late import np
from stallwise.readers.text.rows import named_columns
from stallwise.readers.text.samples import STATES, columns_of
from stallwise.readers.text.scopes import axis_of
from stallwise.readers.text.series import moment
from stallwise.readers.text.words import words_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

LEAST_ROWS = 8  # fewer are a sweep or a comparison
LOADS = (
    "serve.concurrency",
    "serve.offered_rate",
    "serve.achieved_rate",
)  # what tells phases apart where no engine speaks
DAY_S = 86400.0
LATEST_S = 1e11  # since 1970: what is later is in milliseconds

Values: TypeAlias = "NDArray[np.float64]"


def load_series(rows: Rows, file: str) -> Iterator[Item]:
    """Nothing where the table is not about a service, or its rows are no moments."""
    columns = {c.named.quantity.name: c for c in reversed(named_columns(rows))}
    engine = columns_of("engine")
    states = {engine[q]: c.numbers for q, c in columns.items() if q in engine}
    load = next((columns[q].numbers for q in LOADS if q in columns), None)
    served = any(q.startswith("serve.") for q in columns)
    axis = _axis(rows)
    if len(rows) < LEAST_ROWS or not served or (load is None and not states.keys() & STATES) or axis is None:
        return
    source = Source(file, f"{rows.noun}s {rows.places[0]}-{rows.places[-1]}")
    time_s = _times(rows, axis)
    none = np.full(len(rows), np.nan)
    running, waiting = states.get("running", load if load is not None else none), states.get("waiting", none)
    if states.keys() & STATES:
        cells = {name: states.get(name, none) for name in SAMPLE_COLUMNS}
        yield Table(serving.ENGINE_SAMPLES, {**cells, "time_s": time_s, "line": np.array(rows.places, float)}, source)
    kv = states.get("kv_share", none)
    worst = worst_phase(time_s, running, waiting, kv) if "waiting" in states else None
    normal = normal_phase(time_s, running, waiting, kv, worst) if worst else None
    for quantity, column in columns.items():
        if engine.get(quantity, "paused") != "paused":
            continue  # the measures of load tell these from the samples
        for phase, scope in ((worst, WHOLE), (normal, Scope(run="before"))):
            values = column.numbers[phase.rows] if phase else column.numbers if scope is WHOLE else none
            known = values[values == values]
            if len(known):
                yield Fact(column.named.quantity, float(np.median(known)), source, scope, samples=len(known))


def _axis(rows: Rows) -> int | None:
    """The column of time, of moments or of steps."""
    titles = enumerate(rows.columns[:2])
    return next((i for i, c in titles if axis_of(c) in ("time", "step") or words_of(c)[:1] == ("timestamp",)), None)


def _times(rows: Rows, axis: int) -> Values:
    """Seconds from the first row; zeros where the axis cannot be read."""
    times = np.array(list(map(moment, rows.cells[axis])), dtype=float)
    times = np.where(times > LATEST_S, times / 1e3, times)
    times = times + DAY_S * np.cumsum(np.concatenate([[0.0], np.diff(times) < -DAY_S / 2]))  # past midnight
    return times - times[0] if np.all(np.diff(times) >= 0) else np.zeros(len(rows))
