"""Results of load generators that know nothing of tokens: k6 and locust (their names: load_tests.toml)."""

from __future__ import annotations

import csv
import io
import json
import math
import tomllib
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np

from stallwise.errors import UnreadableInput
from stallwise.evidence.artifact import Artifact
from stallwise.evidence.catalog import quantities, serving
from stallwise.evidence.evidence import Item
from stallwise.evidence.fact import WHOLE, Fact, Scope, Source
from stallwise.evidence.load_phases import BAND, LASTING, phases
from stallwise.readers._cells import count_of, number_of
from stallwise.readers.shapes.delimited import whole_rows

FORMAT = "load test"
CAPTURE = "k6 run --summary-export=summary.json script.js, or locust --headless --csv run ..."
EXCLUSIVE = True
BEFORE = "before"
MILLI = 1e-3


@cache
def _book() -> dict[str, Any]:
    return tomllib.loads((files("stallwise.readers") / "load_tests.toml").read_text(encoding="utf-8"))


def recognises(name: str, head: bytes) -> bool:
    """The keys of a tree, or the titles of a table."""
    text = head.decode("utf-8", "replace")
    return _entry(text) is not None


def _entry(text: str) -> tuple[str, dict[str, Any]] | None:
    start = text.lstrip()[:1]
    if start in ("{", "["):
        return next((("tree", e) for e in _book()["tree"] if all(m in text for m in e["marks"])), None)
    titles = text.split("\n", 1)[0].replace('"', "").strip().split(",")
    return next((("table", e) for e in _book()["table"] if set(e["marks"]) <= set(titles)), None)


def read(artifact: Artifact) -> Iterator[Item]:
    """Rates, response times and users; of a history its phases."""
    text = artifact.text()
    found = _entry(text)
    source = Source(artifact.name)
    if found is None:
        return
    kind, entry = found
    if kind == "table":
        yield from _table(text, entry, source)
        return
    try:
        tree = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UnreadableInput(f"{artifact.name} is cut or not JSON", hint="save the result again") from error
    yield from _summed(tree, entry["sums"], source) if "sums" in entry else _tree(tree, entry, source)


def _tree(tree: Any, entry: dict[str, Any], source: Source) -> Iterator[Fact]:
    told: set[str] = set()
    for row in entry["facts"]:
        value = _at(tree, row["path"].split("."))
        if value is not None and row["quantity"] not in told:
            told.add(row["quantity"])
            yield Fact(quantities()[row["quantity"]], value * row.get("factor", 1.0), source)


def _at(tree: Any, path: list[str]) -> float | None:
    """The number under a path; `values` in between is how a custom summary wraps the same."""
    for key in path:
        if isinstance(tree, dict) and key not in tree and isinstance(tree.get("values"), dict):
            tree = tree["values"]
        tree = tree.get(key) if isinstance(tree, dict) else None
    found = None if isinstance(tree, str) else number_of(tree)
    return found if found is not None and math.isfinite(found) else None


def _summed(tree: Any, keys: dict[str, str], source: Source) -> Iterator[Fact]:
    """Entries by name: their sums over all."""
    rows = [r for r in (tree if isinstance(tree, list) else [tree]) if isinstance(r, dict)]
    done = sum(_at(r, [keys["done"]]) or 0.0 for r in rows)
    total = sum(_at(r, [keys["total"]]) or 0.0 for r in rows)
    starts = [t for r in rows if (t := _at(r, [keys["start"]])) is not None]
    ends = [t for r in rows if (t := _at(r, [keys["end"]])) is not None]
    if done > 0:
        yield Fact(serving.REQUESTS_DONE, done, source)
        yield Fact(serving.REQUEST_TIME, MILLI * total / done, source, samples=count_of(done))
        if starts and ends and max(ends) > min(starts):
            yield Fact(serving.ACHIEVED_RATE, done / (max(ends) - min(starts)), source)


def _table(text: str, entry: dict[str, Any], source: Source) -> Iterator[Fact]:
    rows = [
        r for r in whole_rows(csv.DictReader(io.StringIO(text))) if all(r.get(k) == v for k, v in entry["row"].items())
    ]
    parts: list[tuple[list[dict[str, Any]], Scope]] = [(rows[-1:], WHOLE)]
    if "load" in entry:
        parts = _phases(rows, entry)
    for part, scope in parts:
        for fact in entry["facts"]:
            values = [v for r in part if (v := number_of(r.get(fact["column"]))) is not None and v > 0]
            if values:
                quantity = quantities()[fact["quantity"]]
                yield Fact(
                    quantity, float(np.median(values)) * fact.get("factor", 1.0), source, scope, samples=len(values)
                )


def _phases(rows: list[dict[str, Any]], entry: dict[str, Any]) -> list[tuple[list[dict[str, Any]], Scope]]:
    """The rows of the heaviest lasting load, and of the lightest where it is far below."""
    load = np.array([number_of(r.get(entry["load"])) or 0.0 for r in rows])
    time_s = np.array([number_of(r.get(entry["time"])) or 0.0 for r in rows])
    none = np.full(len(rows), np.nan)
    lasting = [p for p in phases(time_s, load, none, none) if p.count >= LASTING and p.running > 0] if len(rows) else []
    if not lasting:
        return [(rows, WHOLE)]
    heavy, light = max(lasting, key=lambda p: p.running), min(lasting, key=lambda p: p.running)
    found = [(rows[heavy.first : heavy.last + 1], WHOLE)]
    if light.running < heavy.running / BAND:
        found.append((rows[light.first : light.last + 1], Scope(run=BEFORE)))
    return found
