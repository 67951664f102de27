"""Results of load generators, saved or printed: vllm and sglang bench serve, aiperf, genai-perf, guidellm, k6, locust.

Where each number stands is data (load_tests.toml)."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from itertools import pairwise
from typing import Any, NamedTuple

from stallwise.errors import UnreadableInput
from stallwise.evidence.artifact import Artifact
from stallwise.evidence.catalog import quantities, serving
from stallwise.evidence.evidence import Item
from stallwise.evidence.fact import Fact, Scope, Source
from stallwise.evidence.load_phases import LASTING, phases
from stallwise.late import np
from stallwise.readers._cells import number_of
from stallwise.readers._patterns import document, patterns
from stallwise.readers.records.plain_rows import plain_words
from stallwise.readers.shapes.tree import tree_of

FORMAT = "load test"
LABELLED = True  # labels and values: its words name what is measured, not what is wrong
CAPTURE = "vllm bench serve --save-result ..."
ANNOUNCED = 8  # lines above a title
_P = patterns("load_test")
_TO_S = {"ms": 1e-3, "us": 1e-6, "ns": 1e-9}


class Result(NamedTuple):
    """One run of a load: its numbers under their keys, and where it stood."""

    numbers: Any
    where: str = ""


def recognises(name: str, head: bytes) -> bool:
    """The keys of a tree, the titles of a table, or the title of a printed one."""
    return _entry(head.decode("utf-8", "replace")) is not None


def _entry(text: str) -> dict[str, Any] | None:
    titles = set(text.split("\n", 1)[0].replace('"', "").strip().split(","))

    def fits(entry: dict[str, Any]) -> bool:
        if _is_tree(text):
            return any(all(key in text for key in keys) for keys in entry.get("keys", ()))
        return ("printed" in entry and entry["printed"] in text) or ("titles" in entry and titles >= {*entry["titles"]})

    return next(filter(fits, document("load_tests")["result"]), None)


def _is_tree(text: str) -> bool:
    return text.lstrip()[:1] in ("{", "[")


def read(artifact: Artifact) -> Iterator[Item]:
    """Latencies, rates, lengths and the load, each run of a sweep scoped by its place; of a history its phases."""
    text = artifact.text()
    entry = _entry(text)
    found = list(_results(artifact, text, entry)) if entry is not None else []
    if entry is None or not found:
        raise UnreadableInput(f"{artifact.name} is cut or not JSON", hint="save the result again")
    many = len(found) > 1
    for place, (numbers, where) in enumerate(found):
        run = Scope(run=f"{artifact.name}#{place}" if many else artifact.name)
        source = Source(artifact.name, where or (f"result {place + 1}" if many else ""))
        yield from _facts(numbers, entry["facts"], source, run)


def _results(artifact: Artifact, text: str, entry: dict[str, Any]) -> Iterator[Result]:
    if not _is_tree(text):
        printed = entry.get("printed", "")
        yield from _printed(text.splitlines(), printed) if printed and printed in text else _table(text, entry)
        return
    tree = tree_of(artifact.name, text)  # bench --append-result and SGLang write one object a line
    rows = [r for r in (tree if isinstance(tree, list) else [tree]) if isinstance(r, dict)]
    if "sums" in entry and rows:
        yield from _summed(rows, entry)
        return
    for row in rows:
        inner = row.get("benchmarks")
        yield from map(Result, [b for b in inner if isinstance(b, dict)] if isinstance(inner, list) else [row])


def _printed(lines: list[str], title: str) -> Iterator[Result]:
    """The tables between two rulers, under their words; the load is announced above the title."""
    starts = [i for i, text in enumerate(lines) if title in text and "====" in text]
    closed = 0
    for start, following in pairwise([*starts, len(lines)]):
        end = next((i for i in range(start + 1, following) if _P["ruler"].match(lines[i])), following)
        rows = [m for line in lines[max(closed, start - ANNOUNCED) : end] if (m := _P["row"].match(line))]
        yield Result({"_".join(plain_words(_P["unit"].sub("", m[1]))): m[2] for m in rows}, f"line {start + 1}")
        closed = end


def _summed(rows: list[dict[str, Any]], entry: dict[str, Any]) -> Iterator[Result]:
    """Entries by name: their sums over all, and the time from the first start to the last end."""
    sums: dict[str, float] = {key: sum(number_of(r.get(key)) or 0.0 for r in rows) for key in entry["sums"]}
    begin, end = ([t for r in rows if (t := number_of(r.get(key))) is not None] for key in entry["span"])
    yield Result({**sums, "span": max(end) - min(begin) if begin and end else None})


def _table(text: str, entry: dict[str, Any]) -> Iterator[Result]:
    """The last row; of a history the middle of the rows of each lasting load."""
    try:
        rows = list(csv.DictReader(io.StringIO(text)))
    except csv.Error as error:
        raise UnreadableInput(f"the table is damaged: {error}", hint="save the result again") from error
    if "named" in entry:
        numbers = {}
        for row in rows:
            title, _, unit = (row[entry["named"]] or "").partition(" (")
            cells = {key: str(cell).replace(",", "") for key, cell in row.items()}
            numbers["_".join(plain_words(title))] = {**cells, "unit": unit.rstrip(")")}
        yield Result(numbers)
        return
    rows = [r for r in rows if all(r.get(k) == v for k, v in entry["row"].items())]
    if "load" not in entry:
        yield from map(Result, rows[-1:])
        return
    load, time_s = (np.array([number_of(r.get(entry[k])) or 0.0 for r in rows]) for k in ("load", "time"))
    none = np.full(len(rows), np.nan)
    lasting = [p for p in phases(time_s, load, none, none) if p.count >= LASTING and p.running > 0] if rows else []
    for first, last in [(p.first, p.last) for p in lasting] or [(0, len(rows) - 1)]:
        yield Result(_middle(rows[first : last + 1]), f"rows {first + 2}-{last + 2}")


def _middle(rows: list[dict[str, str]]) -> dict[str, float]:
    known = {key: [v for r in rows if (v := number_of(r.get(key)))] for key in (rows[0] if rows else ())}
    return {key: float(np.median(values)) for key, values in known.items() if values}


def _facts(numbers: Any, facts: list[dict[str, Any]], source: Source, scope: Scope) -> Iterator[Fact]:
    """The first place that holds a number tells a quantity."""
    stated: set[str] = set()
    for row in facts:
        value, below = _at(numbers, row["at"]), _at(numbers, row["per"]) if "per" in row else 1.0
        if value is not None and below and row["is"] not in stated:
            stated.add(row["is"])
            yield Fact(quantities()[row["is"]], value / below * row.get("factor", 1.0), source, scope)
    model = next((m for key in ("model_id", "model") if isinstance(m := numbers.get(key), str)), None)
    if model is not None:
        yield Fact(serving.MODEL, model, source, scope)


def _at(tree: Any, path: str) -> float | None:
    """The number under a path, in the unit that stands beside it; programs and releases wrap the same in other objects."""
    scale = 1.0
    for key in path.split("."):
        while isinstance(tree, dict) and key not in tree:
            tree = next((tree[w] for w in document("load_tests")["wrappers"] if w in tree), None)
        scale = _TO_S.get(str(tree.get("unit")), 1.0) if isinstance(tree, dict) else 1.0
        tree = tree[key] if isinstance(tree, dict) else None
    number = number_of(tree)
    return None if number is None or abs(number) == float("inf") else number * scale
