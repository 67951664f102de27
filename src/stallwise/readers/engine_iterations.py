"""Engines that print one iteration after the other, as lines or as objects: which key is which column is data (iterations.toml)."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

from stallwise.evidence.artifact import Artifact
from stallwise.evidence.catalog import serving
from stallwise.evidence.evidence import Item
from stallwise.evidence.fact import Fact
from stallwise.evidence.number_columns import Column
from stallwise.evidence.skeletons import Skeletons, skeletons_of
from stallwise.late import np
from stallwise.readers._patterns import document
from stallwise.readers.records.engine_samples import Samples, merged
from stallwise.readers.shapes.clock import clocks_at
from stallwise.readers.shapes.logged import Key, records
from stallwise.readers.shapes.tree import tree_of

FORMAT = "engine iterations"
LABELLED = True  # labels and values: its words name what is measured, not what is wrong
CAPTURE = "trtllm-serve MODEL 2>&1 | tee trtllm.log"
_SCALES = {"ms": 1e3, "pct": 1e2, "%": 1e2}  # as a key or a unit ends
_SIGNS: dict[str, Callable[[Column, Column], Column]] = {
    " / ": lambda a, b: a / np.where(b == 0, np.nan, b),
    " - ": lambda a, b: np.maximum(0.0, a - b),
    " + ": lambda a, b: a + b,
}
_TIMES = ("iteration_s", "device_s")  # what takes no time was not measured


@cache
def forms() -> tuple[tuple[dict[str, Any], frozenset[str]], ...]:
    """Every program's, with the keys that its columns are made of."""
    texts = (
        (form, [way for ways in form["columns"].values() for way in ways]) for form in document("iterations")["form"]
    )
    return tuple((form, frozenset(key for way in ways for key in re.split(r" [-+/] ", way))) for form, ways in texts)


def _fits(form: dict[str, Any], head: bytes) -> bool:
    return any(all(word.encode() in head for word in words) for words in form["marks"])


def recognises(name: str, head: bytes) -> bool:
    """The words of an iteration of one of the programs."""
    return any(_fits(form, head) for form, _ in forms())


def read(artifact: Artifact) -> Iterator[Item]:
    """A table of samples for each program that speaks."""
    for form, keys in (f for f in forms() if _fits(f[0], artifact.head)):
        text = _lines(artifact)
        found: list[Samples] = []
        for own in records(text, lambda key, unit, bare, keys=keys: not bare and key.lower() in keys):  # type: ignore[misc]
            printed = zip(own.like.keys, own.values.T, strict=True)
            columns = _columns(
                form["columns"], {k.key.lower(): numbers / _scale(k) for k, numbers in reversed([*printed])}
            )
            if columns.keys() & {"running", "iteration_s"}:
                found.append(Samples(own.lines, columns))
        table = merged(artifact.name, form["engine"], found, clocks_at(text, [at for s in found for at in s.lines]))
        if table is not None:
            yield Fact(serving.ENGINE, form["engine"], table.source)
            yield table


def _lines(artifact: Artifact) -> Skeletons:
    """As they are; of a document each object is a line."""
    whole = tree_of(artifact.name, artifact.text()) if artifact.head.lstrip()[:1] in (b"{", b"[") else None
    entries = whole if isinstance(whole, list) else [whole]
    return artifact.skeletons if whole is None else skeletons_of([json.dumps(entry) for entry in entries])


def _scale(key: Key) -> float:
    return next((s for end, s in _SCALES.items() if key.key.lower().endswith(end) or key.unit.endswith(end)), 1.0)


def _columns(texts: dict[str, list[str]], numbers: dict[str, Column]) -> dict[str, Column]:
    known = dict(numbers)
    found: dict[str, Column] = {}
    for column, ways in texts.items():
        for values in (v for way in ways if (v := _value(way, known)) is not None):
            usable = np.where(values == 0, np.nan, values) if column in _TIMES else values
            found[column] = np.where(np.isnan(found[column]), usable, found[column]) if column in found else usable
        if column in found:
            known[column] = found[column]
    return found


def _value(way: str, known: dict[str, Column]) -> Column | None:
    """A key, or two with a sign between; a difference is never below nothing."""
    for sign, both in _SIGNS.items():
        if sign in way:
            a, b = (known.get(key) for key in way.split(sign))
            return None if a is None or b is None else both(a, b)
    return known.get(way)
