"""Engines that print one iteration after the other, as lines or as objects: which key is which column is data (iterations.toml)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any

import numpy as np

from stallwise.evidence.artifact import Artifact
from stallwise.evidence.catalog import serving
from stallwise.evidence.evidence import Item
from stallwise.evidence.fact import Fact
from stallwise.evidence.number_columns import TOKEN, Column
from stallwise.evidence.skeletons import Skeletons
from stallwise.readers._cells import number_of
from stallwise.readers._engine_samples import Samples, columns_of, merged
from stallwise.readers._patterns import document
from stallwise.readers.shapes.clock import clock_of, clocks_of

FORMAT = "engine iterations"
CAPTURE = "trtllm-serve MODEL 2>&1 | tee trtllm.log"
DEEPEST = 3  # blocks inside blocks of an object
_SUFFIXES = (("ms", 1e3), ("pct", 1e2))
_TIMES = ("iteration_s", "device_s")  # what takes no time was not measured


@cache
def forms() -> tuple[dict[str, Any], ...]:
    """Every program's, with its expressions ready."""
    ready = {"record": "(?!)", "pairs": "(?!)"}
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
        found = [Samples(s.lines, _columns(form["columns"], s.columns), s.clocks) for s in _records(artifact, form)]
        table = merged(artifact.name, form["engine"], found)
        if table is not None:
            yield Fact(serving.ENGINE, form["engine"], table.source)
            yield table


def _records(artifact: Artifact, form: dict[str, Any]) -> Iterator[Samples]:
    """Objects of a document, or lines; numbers by their keys."""
    whole = _object(artifact.text()) if artifact.head.lstrip()[:1] in (b"{", b"[") else None
    if whole is not None:
        listed = whole if isinstance(whole, list) else [whole]
        yield from _of_objects((at, entry) for at, entry in enumerate(listed) if isinstance(entry, dict))
        return
    text = artifact.skeletons
    for skeleton in text.where(form["record"].search):
        sample, members = text.lines[text.firsts[skeleton]], text.members(skeleton)
        if isinstance(_object_in(sample), dict):
            entries = ((at, _object_in(text.lines[at])) for at in members)
            yield from _of_objects((at, entry) for at, entry in entries if isinstance(entry, dict))
        else:
            yield _of_lines(text, skeleton, form)


def _object_in(line: str) -> Any:
    return _object(line[line.find("{") :].strip().rstrip(",")) if "{" in line else None


def _object(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _of_objects(entries: Iterable[tuple[int, dict[str, Any]]]) -> Iterator[Samples]:
    found = [(at, entry, dict(_flat(entry, "", DEEPEST))) for at, entry in entries]
    if found:
        stamps = (next((v for k, v in entry.items() if k.lower() == "timestamp"), "") for _, entry, _ in found)
        clocks = np.array([clock_of(str(stamp)) for stamp in stamps], dtype=float)
        yield Samples([at for at, _, _ in found], columns_of([numbers for _, _, numbers in found]), clocks)


def _flat(entry: dict[str, Any], above: str, depth: int) -> Iterator[tuple[str, float]]:
    for key, value in entry.items():
        path = f"{above}{key.lower()}"
        if isinstance(value, dict) and depth:
            yield from _flat(value, f"{path}.", depth - 1)
        elif (number := number_of(value)) is not None:
            yield path, number / _scale(path)


def _of_lines(text: Skeletons, skeleton: int, form: dict[str, Any]) -> Samples:
    """Lines of one skeleton have their keys in the same places."""
    members = text.members(skeleton)
    sample = text.lines[members[0]]
    slots = {m.start(): slot for slot, m in enumerate(TOKEN.finditer(sample))}
    places = dict(_places(sample, form))
    numbers = None
    if all(at in slots for at, _ in places.values()):
        numbers = text.columns(skeleton, [slots[at] for at, _ in places.values()])
    if numbers is None:  # one by one
        numbers = np.full((len(members), len(places)), np.nan)
        for row, line in enumerate(text.lines[at] for at in members):
            own = dict(_places(line, form))
            numbers[row] = [_number(line, own[key][0]) if key in own else np.nan for key in places]
    columns = {key: numbers[:, at] / scale for at, (key, (_, scale)) in enumerate(places.items())}
    return Samples(members, columns, clocks_of(text, skeleton))


def _places(line: str, form: dict[str, Any]) -> Iterator[tuple[str, tuple[int, float]]]:
    """Keys, where their numbers start, and what these are divided by."""
    record = form["record"].search(line)
    for key in (k for k, v in (record.groupdict() if record else {}).items() if v is not None):
        yield key, (record.start(key), _scale(key))
    for pair in form["pairs"].finditer(line):
        yield pair[1].lower(), (pair.start(2), _scale(pair[3] or ""))


def _number(line: str, at: int) -> float:
    written = TOKEN.match(line, at)
    return float(written[0].replace(",", "")) if written is not None else np.nan


def _scale(key: str) -> float:
    return next((scale for suffix, scale in _SUFFIXES if key.endswith(suffix)), 1.0)


def _columns(told: dict[str, list[str]], numbers: dict[str, Column]) -> dict[str, Column]:
    known = dict(numbers)
    found: dict[str, Column] = {}
    for column, ways in told.items():
        for values in (v for way in ways if (v := _value(way, known)) is not None):
            usable = np.where(values == 0, np.nan, values) if column in _TIMES else values
            found[column] = np.where(np.isnan(found[column]), usable, found[column]) if column in found else usable
        if column in found:
            known[column] = found[column]
    return found


def _value(way: str, known: dict[str, Column]) -> Column | None:
    """A key, or two with a sign between; a difference is never below nothing."""
    for sign in (" / ", " - ", " + "):
        if sign in way:
            a, b = (known.get(key) for key in way.split(sign))
            if a is None or b is None:
                return None
            return (
                a / np.where(b == 0, np.nan, b) if sign == " / " else np.maximum(0.0, a - b) if sign == " - " else a + b
            )
    return known.get(way)
