"""Prometheus pages: a metric is a key, its labels are beside it; metrics with the same labels are rows of one table."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import NamedTuple

from stallwise.evidence.reading import Cell, Reading, Shape, rows_of

_SAMPLE = re.compile(
    r"^([A-Za-z_:][\w:]{0,199})(?:\{(.*)\})?[ \t]+"
    r"([-+]?(?:\d{1,40}(?:\.\d{0,40})?(?:[eE][-+]?\d{1,9})?|\.\d{1,40}|NaN|nan|Inf|inf))(?:[ \t]+-?\d+)?$"
)
_LABEL = re.compile(r'(?<!\w)(\w{1,80})="((?:[^"\\]|\\.){0,400})"')
PARTS = ("_bucket", "_sum", "_count", "_created")  # of a histogram
_CONSTANT = ("le", "quantile")
LEAST = 3  # samples that make a page
NEARLY_ALL = 0.8  # of its lines that are no comments


class Sample(NamedTuple):
    """One line of a page; its labels as they are written."""

    name: str
    inside: str
    value: float
    line: int = 0

    @property
    def labels(self) -> dict[str, str]:
        return _labels(self.inside)


@lru_cache(maxsize=1 << 12)
def _labels(inside: str) -> dict[str, str]:
    """The same series come again with every page: nobody may change what is shared."""
    return dict(_LABEL.findall(inside))


def samples_in(lines: Iterable[str]) -> Iterator[Sample]:
    """Every metric with a value; what else stands there is passed over."""
    for number, line in enumerate(lines, 1):
        if match := _SAMPLE.match(line.strip()):
            yield Sample(match[1], match[2] or "", float(match[3]), number)


def recognises(name: str, text: str) -> bool:
    """Lines of a metric, labels and a number."""
    lines = [x for x in text[: 1 << 15].splitlines() if x.strip() and not x.startswith("#")][:200]
    found = sum(1 for _ in samples_in(lines))
    typed = "# TYPE " in text[: 1 << 15] or "{" in text[: 1 << 15]
    return typed and found >= LEAST and found >= NEARLY_ALL * len(lines)


def read(text: str) -> Iterator[Shape]:
    """Single numbers as readings, those of several GPUs, ranks or models as rows; parts of histograms are left out."""
    by_labels: dict[tuple[tuple[str, str], ...], dict[str, tuple[float, int]]] = {}
    for sample in samples_in(text.splitlines()):
        labels = tuple(sorted(sample.labels.items()))
        if not sample.name.endswith(PARTS) and not any(key in _CONSTANT for key, _ in labels):
            by_labels.setdefault(labels, {})[sample.name] = sample.value, sample.line
    several = {k for labels in by_labels for k, _ in labels if len({dict(x).get(k) for x in by_labels}) > 1}
    if len(by_labels) > 1 and several:
        columns = list(dict.fromkeys(name for found in by_labels.values() for name in found))
        keys = sorted(several)
        records: list[list[Cell]] = [
            [*(dict(labels).get(k) for k in keys), *(found[c][0] if c in found else None for c in columns)]
            for labels, found in by_labels.items()
        ]
        places = [min(at for _, at in found.values()) for found in by_labels.values()]
        yield rows_of([*keys, *columns], records, places)
        return
    for found in by_labels.values():
        yield from (Reading((name,), value, "", f"line {at}") for name, (value, at) in found.items())
