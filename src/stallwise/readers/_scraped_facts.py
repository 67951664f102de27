"""From readings of /metrics to facts: differences where there are two, totals where there is one, and what cannot be."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import cast

from stallwise.evidence.catalog import quantities, serving
from stallwise.evidence.evidence import Item
from stallwise.evidence.fact import WHOLE, Fact, Note, Scope, Source, Table
from stallwise.evidence.load_phases import normal_phase, worst_phase
from stallwise.late import np
from stallwise.readers._cells import as_columns, count_of
from stallwise.readers._patterns import document
from stallwise.readers._scrape import Histogram, Scrape
from stallwise.readers.records.engine_samples import Samples, merged

BEFORE = "before"
TAIL = 0.99
MIDDLE = 0.5
ENOUGH = 20.0  # observations of a first page: fewer have no mean
SUM_FITS = 0.99  # of the sum that the upper edges must reach


def facts_from(scrapes: Sequence[Scrape], name: str) -> Iterator[Item]:
    """Everything the readings say together; a counter that fell means a restart, and only what came after counts."""
    source = Source(name)
    whole, lies = list(scrapes), _impossible(scrapes)
    for text in lies:
        yield Fact(serving.IMPOSSIBLE, text, source)
        yield Note(text, source)
    scrapes, restarts = _since_restart(whole)
    if restarts:
        yield Fact(serving.RESTARTED, float(restarts), source)
        yield Note(f"the engine restarted {restarts} time(s) while it was watched; counted from the last start", source)
    last = scrapes[-1]
    if last.engine:
        yield Fact(serving.ENGINE, last.engine, source)
    if last.model:
        yield Fact(serving.MODEL, last.model, source)
    pair = len(whole) == 2
    table = _samples(whole, name, last.engine, only_last=pair)
    if table is not None and not lies:
        yield table
    first = scrapes[0] if len(scrapes) > 1 else Scrape()
    for word, quantity in _quantity_names("total").items():
        if word in last.counters and (value := last.counters[word] - first.counters.get(word, 0.0)) >= 0:
            yield Fact(quantities()[quantity], value, source)
    for word, quantity in _quantity_names("state").items():
        if word in last.gauges:
            yield Fact(quantities()[quantity], last.gauges[word], source)
    worst, normal = _phases(scrapes)
    yield from _window(*(worst or (first, last)), source, WHOLE)
    if normal is not None:
        yield from _window(*normal, source, Scope(run=BEFORE))
    elif pair and len(scrapes) == 2:
        yield from _life_before(first, last, source)


def _life_before(first: Scrape, last: Scrape, source: Source) -> Iterator[Item]:
    """Of two pages the first tells what had been until then: a before, where it served enough to have means."""
    served = max((h.count for h in first.histograms.values()), default=0.0)
    if served < ENOUGH or last.counters.get("requests_done", 0.0) <= first.counters.get("requests_done", 0.0):
        return
    before = Scope(run=BEFORE)
    begun = Scrape(first.started_s, counters=dict.fromkeys(first.counters, 0.0)) if first.started_s else Scrape()
    known = 0 < first.started_s < first.time_s
    yield from _window(begun if known else Scrape(), first, source, before)
    if first.now("running") >= 0:
        yield Fact(serving.RUNNING, first.now("running"), source, before)
    for begin, end, scope in ((begun, first, before), (first, last, WHOLE)):
        if end.time_s > begin.time_s > 0 and "requests_done" in end.counters and end.now("running") >= 0:
            yield Fact(serving.OFFERED_RATE, _arrived(begin, end) / (end.time_s - begin.time_s), source, scope)


def _arrived(begin: Scrape, end: Scrape) -> float:
    """Requests that came between two pages: those finished, and those that are inside now and were not."""
    inside = [s.now("running", 0.0) + s.now("waiting", 0.0) for s in (begin, end)]
    return end.counters["requests_done"] - begin.counters.get("requests_done", 0.0) + inside[1] - inside[0]


def _phases(scrapes: Sequence[Scrape]) -> tuple[tuple[Scrape, Scrape] | None, tuple[Scrape, Scrape] | None]:
    """Where load came and stayed, the readings that begin and end it, and those of the calm before: means of all hide it."""
    running, waiting, kv = (
        np.array([scrape.now(word) for scrape in scrapes]) for word in ("running", "waiting", "kv_share")
    )
    time_s = np.array([scrape.time_s for scrape in scrapes])
    worst = worst_phase(time_s, running, waiting, kv)
    if worst is None:
        return None, None
    normal = normal_phase(time_s, running, waiting, kv, worst)
    return (scrapes[worst.first], scrapes[worst.last]), (
        scrapes[normal.first],
        scrapes[normal.last],
    ) if normal else None


def _window(first: Scrape, last: Scrape, source: Source, scope: Scope) -> Iterator[Item]:
    """Rates and latencies between two readings; of a single one since the engine started."""
    span_s = last.time_s - first.time_s if first else 0.0
    done = last.counters.get("requests_done", 0.0) - first.counters.get("requests_done", 0.0)
    if span_s > 0 and done >= 0 and "requests_done" in last.counters:
        yield Fact(serving.ACHIEVED_RATE, done / span_s, source, scope)
    for word, length in _quantity_names("length").items():
        tokens = last.counters.get(word, 0.0) - first.counters.get(word, 0.0)
        if length not in last.histograms and done > 0 and tokens > 0:
            yield Fact(
                quantities()[_quantity_names("mean")[length]], tokens / done, source, scope, samples=count_of(done)
            )
    for word, histogram in last.histograms.items():
        seen = histogram.minus(first.histograms.get(word, Histogram()))
        if seen.count <= 0 and not scope.run:
            seen = histogram  # nothing new in the window: the life of the engine
        yield from _latency(word, seen, source, scope)


def _latency(word: str, seen: Histogram, source: Source, scope: Scope) -> Iterator[Item]:
    if seen.count <= 0 or seen.total < 0:
        return
    samples = count_of(seen.count)
    yield Fact(quantities()[_quantity_names("mean")[word]], seen.mean, source, scope, samples=samples)
    fits = bool(seen.edges) and _fits(seen)
    if word in _quantity_names("tail") and fits:
        yield Fact(quantities()[_quantity_names("tail")[word]], quantile(seen, TAIL), source, scope, samples=samples)
    if word in _quantity_names("middle") and fits:
        yield Fact(
            quantities()[_quantity_names("middle")[word]], quantile(seen, MIDDLE), source, scope, samples=samples
        )
    if not scope.run and word == "tpot" and seen.edges:
        edges = np.array(sorted(seen.edges))
        counts = np.diff(np.array([seen.edges[e] for e in edges.tolist()]), prepend=0.0)
        columns = {"edge_s": edges, "count": counts}
        yield Table(serving.LATENCIES, columns, source, meta={"name": word, "sum_s": seen.total})


def _fits(histogram: Histogram) -> bool:
    """Whether the buckets can hold the sum: those of a shortened or garbled page cannot, and give no quantile."""
    edges = sorted(histogram.edges)
    counts = [histogram.edges[edge] for edge in edges]
    if any(after < before for before, after in pairwise(counts)):
        return False
    beyond = histogram.count - max((c for e, c in histogram.edges.items() if e != float("inf")), default=0.0)
    most = sum(e * (c - b) for e, c, b in zip(edges, counts, [0.0, *counts], strict=False) if e != float("inf"))
    return beyond > 0 or most >= SUM_FITS * histogram.total


def quantile(histogram: Histogram, share: float) -> float:
    """By straight lines inside a bucket, as Prometheus does; the last finite edge where it lies beyond."""
    edges = sorted(histogram.edges)
    wanted, below, left = share * histogram.count, 0.0, 0.0
    for edge in edges:
        count = histogram.edges[edge]
        if count >= wanted:
            if edge == float("inf"):
                return left
            return left + (edge - left) * (wanted - below) / max(count - below, 1e-12)
        below, left = count, edge
    return left


def _since_restart(scrapes: list[Scrape]) -> tuple[list[Scrape], int]:
    start = restarts = 0
    for i in range(1, len(scrapes)):
        before, now = scrapes[i - 1].counters, scrapes[i].counters
        if any(now[w] < before[w] for w in now if w in before):
            start, restarts = i, restarts + 1
    return scrapes[start:], restarts


def _impossible(scrapes: Sequence[Scrape]) -> list[str]:
    """Readings that no engine can have."""
    found = []
    for scrape in scrapes:
        kv, hits = scrape.gauges.get("kv_share"), scrape.counters.get("prefix_hits")
        queries = scrape.counters.get("prefix_queries")
        if kv is not None and not 0 <= kv <= 1.001:
            found.append(f"KV cache usage of {kv:.4g} is not a share")
        if any(scrape.now(w) < 0 for w in ("running", "waiting")):
            found.append("a negative number of requests")
        if hits is not None and queries is not None and hits > queries > 0:
            found.append(f"more prefix hits ({hits:.0f}) than lookups ({queries:.0f})")
        found += [
            f"{w}: {h.count:.0f} observations in {h.total:.4g} s" for w, h in scrape.histograms.items() if h.total < 0
        ]
        if any(v != v or abs(v) == float("inf") for v in scrape.gauges.values()):
            found.append("a gauge that is not a number")
    return list(dict.fromkeys(found))


def _samples(scrapes: Sequence[Scrape], name: str, engine: str, *, only_last: bool) -> Table | None:
    sampled: list[int] = []
    rows: list[dict[str, float]] = []
    for i, scrape in enumerate(scrapes):
        values = dict(scrape.gauges)
        if i and scrape.time_s > scrapes[i - 1].time_s:
            for word, column in _quantity_names("rate").items():
                gained = scrape.counters.get(word, np.nan) - scrapes[i - 1].counters.get(word, 0.0)
                values |= {column: gained / (scrape.time_s - scrapes[i - 1].time_s)} if gained >= 0 else {}
        if scrape.gauges and not (only_last and i == 0):  # of a before and after, only the after is now
            sampled.append(i)
            rows.append(values)
    clocks = np.array([scrapes[i].time_s for i in sampled])
    return merged(name, engine, [Samples(sampled, as_columns(rows))], clocks, scraped=True)


def _quantity_names(what: str) -> dict[str, str]:
    """Which quantity, or other word, a word of the book is."""
    return cast(dict[str, str], document("metric_names")["told"][what])
