"""Engines that print one iteration after the other, as lines or as objects: which key is which column is data (iterations.toml)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import cache
from typing import Any

from stallwise.evidence.artifact import Artifact
from stallwise.evidence.catalog import serving
from stallwise.evidence.evidence import Item
from stallwise.evidence.fact import Fact
from stallwise.readers._cells import number_of
from stallwise.readers._engine_samples import samples_of
from stallwise.readers._patterns import document
from stallwise.readers.shapes.clock import clock_of

FORMAT = "engine iterations"
CAPTURE = "trtllm-serve MODEL 2>&1 | tee trtllm.log"
DEEPEST = 3  # blocks inside blocks of an object
_SUFFIXES = (("ms", 1e3), ("pct", 1e2))
_TIMES = ("iteration_s", "device_s")  # what takes no time was not measured
Record = tuple[dict[str, float], float | None]  # numbers by key, and the clock


@cache
def forms() -> tuple[dict[str, Any], ...]:
    """Every program's, with its expressions ready."""
    ready = {"record": "(?!)", "pairs": "(?!)", "stamp": "(?!)"}
    return tuple(
        {**f, **{k: re.compile(f.get(k, none)) for k, none in ready.items()}} for f in document("iterations")["form"]
    )


def _speaks(form: dict[str, Any], head: bytes) -> bool:
    return any(all(word.encode() in head for word in words) for words in form["marks"])


def recognises(name: str, head: bytes) -> bool:
    """The words of an iteration of one of the programs."""
    return any(_speaks(form, head) for form in forms())


def read(artifact: Artifact) -> Iterator[Item]:
    """A table of samples for each program that speaks."""
    for form in (f for f in forms() if _speaks(f, artifact.head)):
        records = _records(artifact, form)
        rows = [(clock, {**_columns(form["columns"], numbers), "line": line}) for line, (numbers, clock) in records]
        table = samples_of(artifact.name, form["engine"], rows)
        if table is not None:
            yield Fact(serving.ENGINE, form["engine"], table.source)
            yield table


def _records(artifact: Artifact, form: dict[str, Any]) -> Iterator[tuple[int, Record]]:
    """Objects of a document, or line by line."""
    whole = _object(artifact.text()) if artifact.head.lstrip()[:1] in (b"{", b"[") else None
    for number, entry in enumerate(whole if isinstance(whole, list) else [whole] if whole else [], 1):
        if isinstance(entry, dict):
            yield number, _of_object(entry)
    if whole is not None:
        return
    for number, text in enumerate(artifact.lines(), 1):
        match = form["record"].search(text)
        if match is None:
            continue
        entry = _object(text[text.find("{") :].strip().rstrip(",")) if "{" in text else None
        if isinstance(entry, dict):
            yield number, _of_object(entry)
        else:
            yield number, (_of_line(form, match, text), clock_of(form["stamp"].sub(form.get("dated", ""), text)))


def _object(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _of_object(entry: dict[str, Any]) -> Record:
    stamp = next((value for key, value in entry.items() if key.lower() == "timestamp"), "")
    return dict(_flat(entry, "", DEEPEST)), clock_of(str(stamp))


def _flat(entry: dict[str, Any], above: str, depth: int) -> Iterator[tuple[str, float]]:
    for key, value in entry.items():
        path = f"{above}{key.lower()}"
        if isinstance(value, dict) and depth:
            yield from _flat(value, f"{path}.", depth - 1)
        elif (number := number_of(value)) is not None:
            yield path, _scaled(path, number)


def _of_line(form: dict[str, Any], match: re.Match[str], text: str) -> dict[str, float]:
    found = {k: _scaled(k, float(v)) for k, v in match.groupdict().items() if v is not None}
    for key, value, unit in form["pairs"].findall(text):
        found[key.lower()] = _scaled(unit, float(value))
    return found


def _scaled(key: str, number: float) -> float:
    return next((number / scale for suffix, scale in _SUFFIXES if key.endswith(suffix)), number)


def _columns(told: dict[str, list[str]], numbers: dict[str, float]) -> dict[str, float]:
    known, found = dict(numbers), dict[str, float]()
    for column, ways in told.items():
        values = (_value(way, known) for way in ways)
        value = next((v for v in values if v is not None and (v or column not in _TIMES)), None)
        if value is not None:
            found[column] = known[column] = value
    return found


def _value(way: str, known: dict[str, float]) -> float | None:
    """A key, or two with a sign between; a difference is never below nothing."""
    for sign in (" / ", " - ", " + "):
        if sign in way:
            a, b = (known.get(key) for key in way.split(sign))
            if a is None or b is None or (sign == " / " and not b):
                return None
            return a / b if sign == " / " else max(0.0, a - b) if sign == " - " else a + b
    return known.get(way)
