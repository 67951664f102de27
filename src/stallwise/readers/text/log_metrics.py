"""What known programs state in their own lines: which catalogues of metrics the lines of one text speak."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from stallwise.evidence.evidence import Item
from stallwise.evidence.skeletons import Skeletons
from stallwise.readers.text.anchors import Anchors
from stallwise.readers.text.metric_catalogue import MetricCatalogue, metric_catalogues

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from stallwise.late import np


@cache
def _anchors() -> Anchors[tuple[int, int]]:
    """Of all books: (book, gauge)."""
    return Anchors(
        (anchor, (b, g))
        for b, catalogue in enumerate(metric_catalogues())
        for g, metric in enumerate(catalogue.metrics)
        for anchor in metric.anchors
    )


@dataclass(frozen=True, slots=True)
class Place:
    """What readers of lines know of a file: its name, its node, the step, the clock and the node of a line."""

    file: str
    node: str | None
    steps_at: Callable[[Skeletons, Sequence[int]], NDArray[np.float64]]
    clock_of: Callable[[str], float | None]
    node_of: Callable[[str], str | None]


def read_log_metrics(
    text: Skeletons, place: Place, *, records: bool = False
) -> Iterator[tuple[MetricCatalogue, list[Item]]]:
    """Every book that this text speaks, with what it gives; books of `records` where it is a document's."""
    hits: dict[int, dict[int, set[int]]] = {}  # book -> skeleton -> gauges
    for skeleton, asking in _anchors().standing(text).items():
        for catalogue, metric in asking:
            hits.setdefault(catalogue, {}).setdefault(skeleton, set()).add(metric)
    for number in sorted(hits):
        known = metric_catalogues()[number]
        if known.records != records or (known.needs and not any(word.encode() in text.lowered for word in known.needs)):
            continue
        from stallwise.readers.text.metric_reading import MetricReading  # most sentences hold no metric

        if items := list(MetricReading(known, text, place).items(hits[number])):
            yield known, items
