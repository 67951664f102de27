"""One reading of /metrics: names of every engine and year mapped to one word each, engines of one service added up."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cache, lru_cache
from typing import Any

from stallwise.readers._cells import number_of
from stallwise.readers._patterns import document, patterns
from stallwise.readers.shapes.prometheus import PARTS, Sample

_P = patterns("metrics")
AVERAGED = ("kv_share", "hit_share", "gpu_busy")  # of several engines the mean; everything else adds up
STARTED = ("process_start_time_seconds",)  # of every client library of Prometheus


@dataclass
class Histogram:
    """Cumulative counts by upper edge."""

    edges: dict[float, float] = field(default_factory=dict)
    total: float = 0.0  # sum of observations
    count: float = 0.0

    @property
    def mean(self) -> float:
        """Mean observation; NaN of nothing."""
        return self.total / self.count if self.count else float("nan")

    def minus(self, before: Histogram) -> Histogram:
        """What was observed since."""
        edges = {e: c - before.edges.get(e, 0.0) for e, c in self.edges.items()}
        return Histogram(edges, self.total - before.total, self.count - before.count)


@dataclass
class Scrape:
    """All that one reading says."""

    time_s: float = 0.0
    gauges: dict[str, float] = field(default_factory=dict)
    counters: dict[str, float] = field(default_factory=dict)
    histograms: dict[str, Histogram] = field(default_factory=dict)
    engine: str = ""
    model: str = ""
    started_s: float = 0.0  # since 1970, as the process says itself; 0: it does not

    def now(self, word: str, default: float = float("nan")) -> float:
        """What is so at this moment."""
        return self.gauges.get(word, default)

    def __bool__(self) -> bool:
        return bool(self.gauges or self.counters or self.histograms)


@cache
def _names() -> dict[str, list[tuple[str, str, str, int]]]:
    """Metric name to (kind, word, required label, rank): the first alias that is present wins."""
    found: dict[str, list[tuple[str, str, str, int]]] = {}
    for kind in ("gauge", "counter", "histogram"):
        for word, aliases in document("metric_names")[kind].items():
            for rank, alias in enumerate(aliases):
                found.setdefault(alias["name"], []).append((kind, word, alias.get("label", ""), rank))
    return found


def metric_names() -> tuple[str, ...]:
    """Every name of the table."""
    return tuple(_names())


def known_metric(title: str) -> bool:
    """Whether this is a metric of an engine we know, with labels or without, under any exporter's prefix."""
    name = _canonical(title.strip().partition("{")[0])
    stem, part = _histogram_part(name)
    return name in _names() or (bool(part) and stem in _names())


@lru_cache(maxsize=1 << 12)
def _canonical(name: str) -> str:
    """A name as the table has it: without an exporter's prefix, and of an engine that took over another's names under that one's."""
    found = _P["exporter"].sub(lambda m: f"{m[1]}:" if m[1] else "", name)
    stem, part = _histogram_part(found)
    if found in _names() or (part and stem in _names()):
        return found
    own = taken_over().get(found.partition(":")[2]) or (
        taken_over().get(stem.partition(":")[2], "") + part if part else ""
    )
    return own if own not in ("", part) else found


@cache
def taken_over() -> dict[str, str]:
    """Names without their engine, and the first engine that has them; of several words, so that no other program says them."""
    found: dict[str, str] = {}
    for name in _names():
        own = name.partition(":")[2]
        if own.count("_") >= 2:
            found.setdefault(own, name)
    return found


def scrape_of(samples: Iterable[Sample], time_s: float) -> Scrape:
    """What the samples of one moment say together."""
    seen: dict[tuple[str, str], dict[int, Any]] = {}
    raw: dict[str, float] = {}
    engine = model = ""
    for sample in samples:
        name, value = _canonical(sample.name), sample.value
        raw[name] = raw.get(name, 0.0) + value
        part = _histogram_part(name)[1]
        for kind, word, rank in _meanings(name, sample.inside):
            slot = seen.setdefault((kind, word), {})
            if kind == "histogram":
                _observe(slot.setdefault(rank, Histogram()), part, sample, _scale(word, rank))
            elif value >= 0 or word not in AVERAGED:  # a share of -1 says that there is none
                slot.setdefault(rank, []).append(value)
            engine = engine or re.split(r"[:_]", name)[0]
            model = model or sample.labels.get("model_name", "")
    started_s = next((raw[name] for name in STARTED if name in raw), 0.0)
    scrape = Scrape(
        time_s, engine=document("metric_names")["engines"].get(engine, ""), model=model, started_s=started_s
    )
    divided = ((word, a) for word, all_ in document("metric_names")["histogram"].items() for a in all_ if "per" in a)
    for word, sum_ in divided:  # by another counter
        if sum_["name"] in raw and raw.get(sum_["per"], 0.0) > 0:
            whole = Histogram(total=raw[sum_["name"]] * sum_.get("scale", 1.0), count=raw[sum_["per"]])
            scrape.histograms.setdefault(word, whole)
    for (kind, word), slot in seen.items():
        if not slot:
            continue
        best = slot[min(slot)]
        if kind == "histogram":
            scrape.histograms[word] = best
        else:
            whole = sum(best) / len(best) if word in AVERAGED else sum(best)
            (scrape.gauges if kind == "gauge" else scrape.counters)[word] = whole
    return scrape


@lru_cache(maxsize=1 << 12)
def _meanings(name: str, labels: str) -> tuple[tuple[str, str, int], ...]:
    """Kind, word and rank of all that a metric with these labels tells."""
    stem, part = _histogram_part(name)
    metric_names = (*_names().get(name, ()), *(_names().get(stem, ()) if part else ()))
    shaped = bool(part and stem in _names())
    return tuple(
        (k, word, rank) for k, word, label, rank in metric_names if (k == "histogram") == shaped and label in labels
    )


@lru_cache(maxsize=1 << 12)
def _histogram_part(name: str) -> tuple[str, str]:
    part = next((part for part in PARTS[:3] if name.endswith(part)), "")
    return name.removesuffix(part), part


@cache
def _scale(word: str, rank: int) -> float:
    """What turns a metric's unit into seconds."""
    return float(document("metric_names")["histogram"][word][rank].get("scale", 1.0))


def _observe(histogram: Histogram, part: str, sample: Sample, scale: float) -> None:
    if part == "_sum":
        histogram.total += sample.value * scale
    elif part == "_count":
        histogram.count += sample.value
    elif (edge := number_of(sample.labels.get("le"))) is not None:
        histogram.edges[edge * scale] = histogram.edges.get(edge * scale, 0.0) + sample.value


def grew(before: Scrape, after: Scrape) -> bool:
    """The same process later: the same start and model, every counter at least as high, and some higher."""
    if before.started_s != after.started_s or (before.engine, before.model) != (after.engine, after.model):
        return False
    if before.counters.keys() - after.counters.keys() or before.histograms.keys() - after.histograms.keys():
        return False
    counts = [(before.counters[w], after.counters[w]) for w in before.counters]
    for word, histogram in before.histograms.items():
        later = after.histograms[word]
        counts += [
            (histogram.count, later.count),
            (histogram.total, later.total),
            *((c, later.edges.get(e, 0.0)) for e, c in histogram.edges.items()),
        ]
    return all(a <= b for a, b in counts) and any(a < b for a, b in counts)
