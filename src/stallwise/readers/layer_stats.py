"""Statistics of layers as CSV, as JSON, as safetensors, or as the overflow report that Transformers prints."""

from __future__ import annotations

import csv
import json
import math
import re
import struct
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any

from stallwise.errors import UnreadableInput
from stallwise.evidence.artifact import Artifact
from stallwise.evidence.evidence import Item
from stallwise.evidence.fact import Source, Table
from stallwise.late import np
from stallwise.readers._patterns import document, patterns
from stallwise.readers.records.plain_rows import plain_words
from stallwise.readers.shapes import tree
from stallwise.readers.shapes.delimited import whole_rows

FORMAT = "layer statistics"
LABELLED = True  # labels and values: its words name what is measured, not what is wrong
KIND = "numerics.layers"
WORDS = ("layer", "dtype")  # columns that hold no numbers
STEPS = {"step", "iteration", "batch_number"}  # every other key of x counts tokens
_DTYPES = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4"}
_P = patterns("layer_stats")
MAX_HEADER_BYTES = 1 << 24


def recognises(name: str, head: bytes) -> bool:
    """A header line with a layer column, an overflow report, or a safetensors file of statistics."""
    if _is_safetensors(head):
        return bool(re.search(rb"amax|abs_?max|satur|zero", head[:65536]))
    if b"\x00" in head[:1024]:
        return False
    text = head[:65536].decode("utf-8", "replace")
    if _P["report"].search(text):
        return True
    if text.lstrip()[:1] in ("{", "["):
        by_row = is_layer_row(_P["key"].findall(text[:8192]))
        return _P["object"].search(text) is not None and (by_row or _P["list_of_ranges"].search(text) is not None)
    first = next((line for line in text.splitlines() if line.strip()), "")
    return "," in first and is_layer_row(first.split(","))


def read(artifact: Artifact) -> Iterator[Item]:
    """One table of layers."""
    source = Source(artifact.name)
    if _is_safetensors(artifact.head):
        yield table_of(list(_safetensors(artifact)), source)
        return
    text = artifact.text()
    if match := _P["report"].search(text):
        yield table_of(list(_report(text, float(match[1]))), source)
        return
    if text.lstrip()[:1] in ("{", "["):
        layers = list(_objects(tree.tree_of(artifact.name, text)))
        yield from [table_of(layers, source)] if layers else []
        return
    lines = [line for line in text.splitlines() if line.strip()]
    rows = [{key: cell for key, cell in row.items() if key} for row in whole_rows(csv.DictReader(lines))]
    if not rows:
        raise UnreadableInput(f"{artifact.name} has no rows", hint="write layer,amax,... one line a layer")
    yield table_of(list(_by_length(rows)), source)


def _by_length(rows: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Rows with a column of ranges for each length (`amax_2k`, `amax_32k`), as one row a length; others as they are."""
    for row in rows:
        lengths = {key: found for key in row if key and (found := _P["range_at"].fullmatch(key.strip())) is not None}
        if not lengths:
            yield row
            continue
        rest = {key: cell for key, cell in row.items() if key not in lengths}
        for key, found in lengths.items():
            tokens = float(found["tokens"]) * (1024.0 if found["thousands"] else 1.0)
            yield {**rest, found["range"]: row[key], "context": tokens}


def _objects(found: Any) -> Iterator[dict[str, Any]]:
    """Rows of layers, and lists of one number a layer: {"step": 3, "amax": [0.1, 0.2]}."""
    lists = [v for v in found.values() if isinstance(v, list)] if isinstance(found, dict) else [found]
    for rows in ([r for r in x if isinstance(r, dict)] for x in lists if isinstance(x, list)):
        if rows and is_layer_row(rows[0]):
            yield from rows
            continue
        for index, row in enumerate(rows):
            step = next((v for k, v in row.items() if role_of(k) == "x"), float(index))
            for key, values in row.items():
                if isinstance(values, list) and _P["range"].search(key):
                    yield from ({"layer": f"{key}[{i}]", "step": step, "amax": v} for i, v in enumerate(values))


def _report(text: str, step: float) -> Iterator[dict[str, Any]]:
    layer = ""
    for line in text.splitlines():
        if (values := _P["values"].match(line)) and layer:
            if values[3].lower().startswith("output"):
                yield {"layer": layer, "step": step, "amax": values[2]}
        elif module := _P["module"].match(line):
            layer = module[1]


def _is_safetensors(head: bytes) -> bool:
    if len(head) < 16 or head[8:9] != b"{":
        return False
    (size,) = struct.unpack("<Q", head[:8])
    return bool(2 <= size <= MAX_HEADER_BYTES)


def _safetensors(artifact: Artifact) -> Iterator[dict[str, Any]]:
    with artifact.open() as stream:
        data = stream.read(256 << 20)
    (size,) = struct.unpack("<Q", data[:8])
    try:
        header = json.loads(data[8 : 8 + size])
        layers: dict[str, dict[str, Any]] = {}
        for key, entry in header.items():
            stat = key.rsplit(".", 1)[-1]
            if key == "__metadata__" or role_of(stat) is None or entry["dtype"] not in _DTYPES:
                continue
            begin, end = entry["data_offsets"]
            values = np.frombuffer(data[8 + size + begin : 8 + size + end], dtype=_DTYPES[entry["dtype"]])
            largest = float(np.max(np.abs(values))) if len(values) else math.nan
            layers.setdefault(key.rsplit(".", 1)[0], {})[stat] = largest
    except (ValueError, KeyError, TypeError, struct.error) as error:
        raise UnreadableInput(
            f"{artifact.name} is a damaged safetensors file: {error}", hint="write it again"
        ) from error
    for layer, stats in layers.items():
        yield {"layer": layer, **stats}


@cache
def _roles() -> dict[str, str]:
    return {key: role for role, keys in document("layers").items() for key in keys}


def role_of(key: str) -> str | None:
    """Which column of the table a key is."""
    return _roles().get("_".join(plain_words(key)))


def is_layer_row(keys: Iterable[str]) -> bool:
    """A row about a layer and some range or error of it."""
    named = [found["range"] if (found := _P["range_at"].fullmatch(k.strip())) else k for k in keys]
    roles = {role_of(k) for k in named}
    return "layer" in roles and bool(roles & {"amax", "saturated", "zero", "error"})


def table_of(rows: list[dict[str, Any]], source: Source) -> Table:
    """Rows as columns; what is missing is NaN."""
    columns: dict[str, list[Any]] = {role: [] for role in _roles().values()}
    for row in rows:
        named = {role_of(k): v for k, v in row.items()}
        if len(names := [str(v) for k, v in row.items() if role_of(k) == "layer"]) > 1:
            named["layer"] = ".".join(names)  # "layer" and "module" together name it
        for role, cells in columns.items():
            value = named.get(role)
            cells.append(("" if value is None else str(value)) if role in WORDS else _number(value))
    arrays = {role: np.array(v, dtype=object if role in WORDS else np.float64) for role, v in columns.items()}
    along = {"_".join(plain_words(key)) for row in rows for key in row if role_of(key) == "x"}
    return Table(KIND, arrays, source, meta={"over": "context" if along - STEPS else "step"})


def _number(value: Any) -> float:
    """Words such as inf and nan are themselves."""
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return math.nan
