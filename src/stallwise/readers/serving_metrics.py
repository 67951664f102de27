"""Metrics of a serving engine (their names: metric_names.toml) in whatever form they were saved: /metrics pages, one or many in a
file; answers of the Prometheus HTTP API; a dashboard's table with one column a metric, or rows of time, metric and value.

All are told as pages by their time, as if each had been saved."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import pairwise
from typing import Any

from stallwise.errors import UnreadableInput
from stallwise.evidence.artifact import Artifact
from stallwise.evidence.evidence import Item
from stallwise.evidence.reading import Cell, Rows
from stallwise.readers._cells import number_of
from stallwise.readers._patterns import patterns
from stallwise.readers._scrape import Scrape, grew, known_metric, metric_names, scrape_of, taken_over
from stallwise.readers._scraped_facts import facts_from
from stallwise.readers.shapes import delimited
from stallwise.readers.shapes.clock import clock_of
from stallwise.readers.shapes.prometheus import Sample, samples_in

FORMAT = "engine metrics"
CAPTURE = "curl -s http://HOST:8000/metrics > metrics.txt"
EXCLUSIVE = True
HEAD_BYTES = 1 << 16
MILLISECONDS = 1e11  # a count since 1970 above this is in milliseconds
_P = patterns("metrics")


def recognises(name: str, head: bytes) -> bool:
    """A metric of a known engine: a line of a page, a name in an answer, a title or a cell of a table."""
    text = head.decode("utf-8", "replace")
    if text.lstrip()[:1] in ("{", "["):  # a large trace is not worth the search
        return _P["kind"].search(text) is not None and any(map(known_metric, _P["name"].findall(text)))
    return _known().search(text) is not None or _table(text[:HEAD_BYTES]) is not None


@cache
def _known() -> re.Pattern[str]:
    prefixes = {re.escape(n.split(":")[0]) + "[:_]" if ":" in n else re.escape(n) for n in metric_names()}
    own = rf"(?:[a-z]+_)?(?:{'|'.join(sorted(prefixes))})\w*[{{ ]"
    taken = rf"[a-z]\w{{1,40}}:(?:{'|'.join(map(re.escape, taken_over()))})[{{ ]"
    return re.compile(rf"^(?:{own}|{taken})", re.MULTILINE)


def read(artifact: Artifact) -> Iterator[Item]:
    """Facts and, where there are several pages, a table over time."""
    text = artifact.text()
    if text.lstrip()[:1] in ("{", "["):
        scrapes = _by_time(_of_answer(text))
    elif _known().search(text):
        scrapes = pages(text)
    else:
        scrapes = _by_time(_of_table(text))
    if not scrapes:
        raise UnreadableInput(
            f"{artifact.name} is cut, or holds no metric we know with a value",
            hint="save it again, by the engine's own names",
        )
    yield from facts_from(scrapes, artifact.name)


def _by_time(samples: Iterable[tuple[float, str]]) -> list[Scrape]:
    found: dict[float, list[str]] = defaultdict(list)
    for at, line in samples:
        found[at].append(line)
    return [scrape for at in sorted(found) if (scrape := scrape_of(samples_in(found[at]), at))]


def pages(text: str) -> list[Scrape]:
    """The readings in a file of pages: the next begins where a line says so, or names what was already named."""
    found: list[tuple[float, list[Sample]]] = [(0.0, [])]
    named: set[tuple[str, str]] = set()
    stamp, marked = 0.0, False
    for line in text.splitlines():
        if line.startswith(("# HELP", "# TYPE")) or not line.strip():
            continue
        if sample := next(samples_in([line]), None):
            if sample[:2] in named and not marked:
                found.append((stamp, []))
                named = set()
            named.add(sample[:2])
            found[-1][1].append(sample)
        elif mark := _P["page"].match(line):
            found.append((float(mark[1]), []))
            marked = True
        elif not marked and (read := _moment(line)) is not None:  # what a loop of curl and date leaves between pages
            stamp = read
            if not named:
                found[-1] = (stamp, [])
    return [scrape for at, samples in found if (scrape := scrape_of(samples, at))]


def in_order(texts: list[str]) -> list[int]:
    """Places of single pages of one process in the order of time; none where they are of several, or hold several each."""
    found = [pages(text) for text in texts]
    if any(len(scrapes) != 1 or not scrapes[0].counters for scrapes in found):
        return []
    order = sorted(range(len(texts)), key=lambda i: (found[i][0].time_s, sum(found[i][0].counters.values())))
    return order if all(grew(found[a][0], found[b][0]) for a, b in pairwise(order)) else []


def _moment(line: str) -> float | None:
    """Since 1970 where such a count is printed, else of the calendar or since midnight; None without a clock."""
    return float(found[1]) if (found := _P["epoch"].search(line)) else clock_of(line)


def _of_answer(text: str) -> Iterator[tuple[float, str]]:
    try:
        answer = json.loads(text)
        results = answer["data"]["result"] if "data" in answer else answer["result"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return
    for result in results if isinstance(results, list) else ():
        if not isinstance(result, dict) or not isinstance(result.get("metric"), dict):
            continue
        labels: dict[str, Any] = dict(result["metric"])
        name = str(labels.pop("__name__", ""))
        inside = ",".join(f'{key}="{value}"' for key, value in labels.items())
        values = result.get("values", [result["value"]] if "value" in result else [])
        for pair in values if isinstance(values, list) else ():
            if isinstance(pair, list) and len(pair) == 2 and (at := number_of(pair[0])) is not None:
                yield at, f"{name}{{{inside}}} {pair[1]}"


def _table(text: str) -> tuple[Rows, list[int]] | None:
    """The rows with the columns whose titles are metrics, or else the one whose cells are."""
    rows = delimited.table_in(text) if delimited.sign_of(text) is not None else None
    if rows is None:
        return None
    wide = [at for at, title in enumerate(rows.columns) if known_metric(title)]
    for at, cells in enumerate(rows.cells) if not wide else ():
        if cells and all(isinstance(c, str) for c in cells) and any(known_metric(str(c)) for c in cells):
            return rows, [at]
    return (rows, wide) if wide else None


def _of_table(text: str) -> Iterator[tuple[float, str]]:
    rows, metrics = _table(text) or (Rows((), (), []), [])
    times = _times(rows)
    for at in metrics:
        values = [i for i, t in enumerate(rows.columns) if t.strip().lower() in ("value", "val", "mean", "last")]
        wide = known_metric(rows.columns[at])
        for place, value in enumerate(rows.cells[at if wide else values[0]] if wide or values else ()):
            if isinstance(value, float):
                yield times[place], f"{rows.columns[at].strip() if wide else rows.cells[at][place]} {value}"


def _times(rows: Rows) -> list[float]:
    """Seconds of each row, by the first column that is a clock; the rows' order where there is none."""
    for title, cells in zip(rows.columns, rows.cells, strict=True):
        found = [] if known_metric(title) else [t for c in cells if (t := _seconds(c)) is not None]
        if found and len(found) == len(cells):
            return found
    return [float(at) for at in range(len(rows))]


def _seconds(cell: Cell) -> float | None:
    if isinstance(cell, str):
        return clock_of(cell)
    return None if cell is None else cell / 1e3 if cell > MILLISECONDS else cell
