"""A scaling series: a table of GPUs (or nodes) against time, throughput or bandwidth, as CSV or as aligned text."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from stallwise.errors import StallwiseError
from stallwise.evidence.artifact import Artifact
from stallwise.evidence.evidence import Item
from stallwise.evidence.fact import Source, Table
from stallwise.readers._patterns import patterns
from stallwise.readers.shapes.delimited import cells_in
from stallwise.units import Unit, parse

FORMAT = "scaling series"
_P = patterns("scaling_csv")
UNITS = {"ms": 1e-3, "us": 1e-6}


def recognises(name: str, head: bytes) -> bool:
    """A header with a number of GPUs and something that is measured, then rows of numbers."""
    return _layout(head[:4096].decode("utf-8", errors="replace").splitlines()) is not None


def read(artifact: Artifact) -> Iterator[Item]:
    """Columns: ranks, nodes (NaN where unknown), seconds (NaN) and rate per GPU (NaN), label."""
    lines = artifact.lines()
    layout = _layout(lines)
    if layout is None:
        return
    start, cells, comma = layout
    rows = [dict(zip(cells, _split(line, comma), strict=False)) for line in lines[start + 1 :] if line.strip()]
    size_key = next((c for c in cells if _P["size"].match(c)), None)
    nodes_key = next((c for c in cells if _P["nodes"].match(c)), None)
    per_key = next((c for c in cells if _P["per_node"].match(c)), None)
    value_key, kind = _value(cells)
    text_keys = [c for c in cells if c not in (size_key, nodes_key, per_key, value_key)]
    out: list[tuple[float, float, float, float, str]] = []
    for row in rows:
        nodes, per = _number(row.get(nodes_key or "")), _number(row.get(per_key or ""))
        ranks = _number(row.get(size_key or "")) if size_key else nodes * (per if per == per else 1.0)
        value = _number(row.get(value_key, ""), kind == "time")
        if not (ranks >= 1 and value > 0):  # a number of GPUs; an index starts at 0
            continue
        label = " ".join(str(row[k]) for k in text_keys if k in row and _number(row[k]) != _number(row[k]))
        seconds = value * _scale(value_key) if kind == "time" else float("nan")
        rate = value / (ranks if kind == "rate" else 1.0) if kind != "time" else float("nan")
        out.append((ranks, nodes, seconds, rate, label))
    if len(out) >= 2:
        names = ("ranks", "nodes", "seconds", "rate_each", "label")
        columns = {n: np.array(v) for n, v in zip(names, zip(*out, strict=True), strict=True)}
        yield Table("scaling.series", columns, Source(artifact.name, f"line {start + 1}"), meta={"measured": value_key})


def _layout(lines: list[str]) -> tuple[int, list[str], bool] | None:
    for number, line in enumerate(lines[:20]):
        comma = "," in line
        cells = [re.sub(r"[^\w/]+", "_", c.strip().lower()).strip("_") for c in _split(line, comma)]
        sized = any(_P["size"].match(c) for c in cells) or (
            any(_P["nodes"].match(c) for c in cells) and len(cells) >= 2
        )
        if not sized or not 2 <= len(cells) <= 20 or not _value(cells)[0]:
            continue
        body = [_split(x, comma) for x in lines[number + 1 : number + 4] if x.strip()]
        if body and all(len(b) >= 2 and sum(_number(c) == _number(c) for c in b) >= 2 for b in body):
            return number, cells, comma
    return None


def _value(cells: list[str]) -> tuple[str, str]:
    """The measured column: rates per GPU first, then times, then rates of all."""
    open_cells = [c for c in cells if not (_P["size"].match(c) or _P["nodes"].match(c) or _P["per_node"].match(c))]
    for cell in open_cells:
        if _P["rate"].search(cell) and _P["rate_each"].search(cell):
            return cell, "rate each"
    for cell in open_cells:
        if _P["time"].search(cell) and not _P["rate"].search(cell):
            return cell, "time"
    for cell in open_cells:
        if _P["rate"].search(cell):
            return cell, "rate each" if _P["bandwidth"].search(cell) else "rate"
    return "", ""


def _split(line: str, comma: bool) -> list[str]:
    return cells_in(line) if comma else re.split(r"\s{2,}|\t|\s*\|\s*|\s+", line.strip(" |"))


def _scale(name: str) -> float:
    suffix = name.removesuffix("_p50").removesuffix("_p95").rsplit("_", 1)[-1]
    return UNITS.get(suffix, 1.0)


def _number(text: str | None, as_time: bool = False) -> float:
    if not text:
        return float("nan")
    try:
        return parse(text.strip(), Unit.SECOND if as_time else Unit.COUNT)
    except StallwiseError:
        return float("nan")
