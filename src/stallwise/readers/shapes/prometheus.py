"""Prometheus pages: a metric is a key, its labels are beside it; metrics with the same labels are rows of one table."""

from __future__ import annotations

import re
from collections.abc import Iterator

from stallwise.evidence.reading import Cell, Reading, Shape, rows_of

_NUMBER = r"[-+]?(?:\d{1,40}(?:\.\d{0,40})?(?:[eE][-+]?\d{1,9})?|NaN|Inf|\.\d{1,40})"
_SAMPLE = re.compile(r"^([A-Za-z_:][\w:]{0,199})(?:\{([^}]{0,2000})\})?[ \t]+(" + _NUMBER + r")(?:[ \t]+\d+)?[ \t]*$")
_LABEL = re.compile(r'(?<!\w)(\w{1,80})="((?:[^"\\]|\\.){0,400})"')
_HISTOGRAM = ("_bucket", "_sum", "_count", "_created")
_CONSTANT = ("le", "quantile")
LEAST = 3  # samples that make a page
NEARLY_ALL = 0.8  # of its lines that are no comments


def recognises(name: str, text: str) -> bool:
    """Lines of a metric, labels and a number."""
    lines = [x for x in text[: 1 << 15].splitlines() if x.strip() and not x.startswith("#")][:200]
    found = sum(_SAMPLE.match(x) is not None for x in lines)
    told = "# TYPE " in text[: 1 << 15] or "{" in text[: 1 << 15]
    return told and found >= LEAST and found >= NEARLY_ALL * len(lines)


def read(text: str) -> Iterator[Shape]:
    """Single numbers as readings, those of several GPUs, ranks or models as rows; parts of histograms are left out."""
    by_labels: dict[tuple[tuple[str, str], ...], dict[str, tuple[float, int]]] = {}
    for number, line in enumerate(text.splitlines(), 1):
        match = _SAMPLE.match(line)
        if match is None or match[1].endswith(_HISTOGRAM):
            continue
        labels = tuple(sorted(_LABEL.findall(match[2] or "")))
        if not any(key in _CONSTANT for key, _ in labels):
            by_labels.setdefault(labels, {})[match[1]] = float(match[3]), number
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
