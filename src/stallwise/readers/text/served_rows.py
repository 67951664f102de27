"""A service's table: moments of an engine, loads of a sweep, single requests, or turns of a conversation, whoever wrote it.

Of hours medians hide the storm: what the worst lasting phase shows is the run in question, the quiet one is `before`. Of requests
means count and not medians: parts of a life add up to the whole only so.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from stallwise.evidence.catalog import serving
from stallwise.evidence.engine_samples import SAMPLE_COLUMNS
from stallwise.evidence.evidence import Item
from stallwise.evidence.fact import WHOLE, Fact, Scope, Source, Table
from stallwise.evidence.load_phases import normal_phase, worst_phase
from stallwise.evidence.reading import Rows
from stallwise.late import np
from stallwise.readers.text.in_service import LOADS
from stallwise.readers.text.rows import MENTION, Column, named_columns
from stallwise.readers.text.samples import STATES, columns_of
from stallwise.readers.text.scopes import axis_of
from stallwise.readers.text.series import moment
from stallwise.readers.text.words import words_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

LEAST_MOMENTS = 8  # rows: fewer are a sweep or a comparison
MOST_LOADS = 64  # rows: more are moments or requests
LEAST_RECORDS = 3
SHORT_AGAIN = 0.1  # of the longest wait
LONGEST_LIFE_S = 1e9  # what is longer, or counts more tokens, is damage
DAY_S = 86400.0
LATEST_S = 1e11  # since 1970: what is later is in milliseconds
TURN = "turn"
PARTS = {q.name for q in (serving.QUEUE_TIME, serving.PREFILL_TIME, serving.DECODE_TIME, serving.TTFT)}
TIMES = {*PARTS, *(q.name for q in (serving.TPOT, serving.REQUEST_TIME, serving.REQUEST_TAIL, serving.TTFT_TAIL))}
RATES = {serving.OUTPUT_RATE.name, serving.ACHIEVED_RATE.name, serving.PER_REQUEST_RATE.name}
LIVES = {*PARTS, *(q.name for q in (serving.TPOT, serving.REQUEST_TIME, serving.PROMPT_TOKENS, serving.OUTPUT_TOKENS))}
SWEPT = {*LOADS, serving.RUNNING.name, serving.WAITING.name}

Values: TypeAlias = "NDArray[np.float64]"


def served_rows(rows: Rows, file: str) -> tuple[Item, ...]:
    """What the table tells; nothing where it is not of a service."""
    columns = {c.named.quantity.name: c for c in reversed(named_columns(rows))}
    if not any(q.startswith("serve.") for q in columns):
        return ()
    return tuple(
        _moments(rows, file, columns)
        or [*_loads(rows, file, columns), *(_turns(rows, file, columns) or _requests(rows, file, columns))]
    )


# --- over time ---


def _moments(rows: Rows, file: str, columns: dict[str, Column]) -> list[Item]:
    """Samples of the engine, and facts of its phases."""
    engine = columns_of("engine")
    states = {engine[q]: c.numbers for q, c in columns.items() if q in engine}
    load = next((columns[q].numbers for q in LOADS if q in columns), None)
    axis = _axis(rows)
    if len(rows) < LEAST_MOMENTS or (load is None and not states.keys() & STATES) or axis is None:
        return []
    source = Source(file, f"{rows.noun}s {rows.places[0]}-{rows.places[-1]}")
    time_s = _times(rows, axis)
    none = np.full(len(rows), np.nan)
    running, waiting = states.get("running", load if load is not None else none), states.get("waiting", none)
    found: list[Item] = []
    if states.keys() & STATES:
        cells = {name: states.get(name, none) for name in SAMPLE_COLUMNS}
        table = {**cells, "time_s": time_s, "line": np.array(rows.places, float)}
        found.append(Table(serving.ENGINE_SAMPLES, table, source))
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
                found.append(Fact(column.named.quantity, float(np.median(known)), source, scope, samples=len(known)))
    return found


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


# --- over loads ---


def _loads(rows: Rows, file: str, columns: dict[str, Column]) -> list[Item]:
    """One row a load: its latencies and rates under it."""
    load = next((columns[q].numbers for q in LOADS if q in columns), None)
    measured = columns.keys() & (TIMES | RATES | {serving.TPOT_TAIL.name})
    if load is None or not measured or not 2 <= len(rows) <= MOST_LOADS or len(np.unique(load[load > 0])) < 2:
        return []
    if rows.noun == MENTION and len(rows) == 2:
        return []  # of sentences these are before and now, with more beside them
    source = Source(file, f"{rows.noun}s {rows.places[0]}-{rows.places[-1]}", rows.noun == MENTION)
    return [Table(serving.LOAD_POINTS, {q: c.numbers for q, c in columns.items()}, source)]


# --- over requests ---


def _turns(rows: Rows, file: str, columns: dict[str, Column]) -> list[Item]:
    """Turns of conversations: a prompt holds the one before it, so that much of it could come from the cache."""
    turn = next((i for i, c in enumerate(rows.columns) if words_of(c)[-1:] == (TURN,)), None)
    prompts, hits = columns.get(serving.PROMPT_TOKENS.name), columns.get(serving.PREFIX_HITS.name)
    numbers = rows.numbers(turn) if turn is not None else None
    if numbers is None or prompts is None or hits is None:
        return []
    length, found = prompts.numbers, hits.numbers
    begins = np.flatnonzero(np.concatenate([[True], np.diff(numbers) <= 0]))
    least, worst = float("inf"), list[Item]()
    for first, end in zip(begins, [*begins[1:], len(rows)], strict=True):
        later = np.arange(first + 1, end)
        later = later[length[later - 1] < length[later]]  # it goes on
        if len(later) < 2:
            continue
        source = Source(file, f"{rows.noun}s {rows.places[first]}-{rows.places[end - 1]}")
        hit = float(found[later].sum() / length[later].sum())
        means = (
            (serving.PROMPT_TOKENS, length[later].mean()),
            (serving.SHARED_PREFIX, length[later - 1].mean()),
            (serving.HIT_SHARE, hit),
            *((c.named.quantity, c.numbers[later].mean()) for q, c in columns.items() if q in PARTS),
        )
        if hit < least:
            least, worst = hit, [Fact(q, float(x), source, samples=len(later)) for q, x in means]
    return worst


def _requests(rows: Rows, file: str, columns: dict[str, Column]) -> list[Item]:
    """What a request's life is made of, in the mean; nothing where rows are loads, moments or steps."""
    if len(rows) < LEAST_RECORDS or not columns.keys() & PARTS or columns.keys() & SWEPT:
        return []
    if any(axis_of(title) == "step" for title in rows.columns):
        return []
    source = Source(file, f"{rows.noun}s {rows.places[0]}-{rows.places[-1]}")
    means: dict[str, Item] = {}
    longest: dict[str, float] = {}
    for column in named_columns(rows):
        known = [v for v in column.values if isinstance(v, float) and v < LONGEST_LIFE_S]
        quantity = column.named.quantity
        if quantity is serving.QUEUE_TIME and _drained(known):
            means[serving.QUEUE_DRAINED.name] = Fact(serving.QUEUE_DRAINED, 1.0, source, samples=len(known))
        if quantity.name in LIVES and len(known) >= LEAST_RECORDS:
            mean = sum(known) / len(known)
            # Of two times that may be the whole ("total", "inference") the longer one is.
            if mean > longest.get(quantity.name, -1.0):
                longest[quantity.name] = mean
                means[quantity.name] = Fact(quantity, mean, source, samples=len(known))
    return [*means.values()]


def _drained(waits: list[float]) -> bool:
    """A queue that more requests join than leave never gets short again; one behind a single long request does."""
    worst = max(waits, default=0.0)
    after = waits[waits.index(worst) + 1 :] if worst > 0 else []
    return len(after) >= LEAST_RECORDS and min(after) < SHORT_AGAIN * worst
