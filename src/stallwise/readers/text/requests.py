"""Records of single requests, whoever wrote them down: what a request's life is made of, in the mean.

Means and not medians: parts of a life add up to the whole only so.
"""

from __future__ import annotations

from collections.abc import Iterator

from stallwise.evidence.catalog import serving
from stallwise.evidence.fact import Fact, Source
from stallwise.evidence.reading import Rows
from stallwise.readers.text.name import name
from stallwise.readers.text.rows import Column, named_columns
from stallwise.readers.text.scopes import axis_of

LEAST_RECORDS = 3
SHORT_AGAIN = 0.1  # of the longest wait
LONGEST_LIFE_S = 1e9  # what is longer, or counts more tokens, is damage
PARTS = {q.name for q in (serving.QUEUE_TIME, serving.PREFILL_TIME, serving.DECODE_TIME, serving.TTFT)}
REQUEST_QUANTITIES = {
    *PARTS,
    *(q.name for q in (serving.TPOT, serving.REQUEST_TIME, serving.PROMPT_TOKENS, serving.OUTPUT_TOKENS)),
}
SWEPT = {q.name for q in (serving.OFFERED_RATE, serving.CONCURRENCY, serving.RUNNING, serving.WAITING)}


def request_facts(rows: Rows, file: str) -> Iterator[Fact]:
    """Nothing where rows are no requests: runs of a load test, moments of an engine, or steps."""
    columns = named_columns(rows)
    quantities = {c.named.quantity.name for c in columns}
    if len(rows) < LEAST_RECORDS or not quantities & PARTS or quantities & SWEPT:
        return
    if any(axis_of(title) == "step" for title in rows.columns):
        return
    source = Source(file, f"{rows.noun}s {rows.places[0]}-{rows.places[-1]}")
    means: dict[str, Fact] = {}
    for column in (*columns, *_wholes(rows, quantities)):
        known = [v for v in column.values if isinstance(v, float) and v < LONGEST_LIFE_S]
        quantity = column.named.quantity
        if quantity is serving.QUEUE_TIME and _drained(known):
            yield Fact(serving.QUEUE_DRAINED, 1.0, source, samples=len(known))
        if quantity.name in REQUEST_QUANTITIES and len(known) >= LEAST_RECORDS:
            fact = Fact(quantity, sum(known) / len(known), source, samples=len(known))
            # Of two times that may be the whole ("total", "inference") the longer one is.
            if quantity.name not in means or fact.number > means[quantity.name].number:
                means[quantity.name] = fact
    yield from means.values()


def _drained(waits: list[float]) -> bool:
    """A queue that more requests join than leave never gets short again; one behind a single long request does."""
    worst = max(waits, default=0.0)
    after = waits[waits.index(worst) + 1 :] if worst > 0 else []
    return len(after) >= LEAST_RECORDS and min(after) < SHORT_AGAIN * worst


def _wholes(rows: Rows, named: set[str]) -> list[Column]:
    """ "total_time", "latency": beside a part of a request's life they are the request's."""
    if serving.REQUEST_TIME.name in named:
        return []
    lacking = [at for at, title in enumerate(rows.columns) if name((title,)) is None]
    asked = Rows(
        tuple(rows.columns[at] for at in lacking),
        tuple(rows.cells[at] for at in lacking),
        rows.places,
        ("request",),
        rows.noun,
    )
    return [c for c in named_columns(asked) if c.named.quantity is serving.REQUEST_TIME]
