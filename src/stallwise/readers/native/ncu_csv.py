"""Nsight Compute CSV: the details page, the raw page (units in the second line) and --print-summary."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator

from stallwise.errors import UnreadableInput
from stallwise.evidence.artifact import Artifact
from stallwise.evidence.evidence import Item
from stallwise.evidence.fact import Note, Source
from stallwise.readers.native._ncu import Launch, facts_of

FORMAT = "Nsight Compute CSV"
CAPTURE = "ncu --set full --csv --page details python script.py > details.csv"
EXCLUSIVE = True

_KEY = "Kernel Name"
_TABLE = re.compile(r"==PROF==|==WARNING==|==ERROR==")
_UNIT_IN_NAME = re.compile(r"^(.*?) \[(.+)\]$")


def recognises(name: str, head: bytes) -> bool:
    """A header line with a kernel name and either metric columns or counters."""
    text = head[:65536].decode("utf-8", "replace")
    titled = (line for line in text.splitlines()[:200] if _KEY in line and "," in line)
    return any("Metric Name" in line or "__" in line or "Section Name" in line for line in titled)


def read(artifact: Artifact) -> Iterator[Item]:
    """Facts per kernel."""
    source = Source(artifact.name)
    lines = artifact.lines()
    start = next((i for i, line in enumerate(lines) if _KEY in line and "," in line), None)
    if start is None:
        raise UnreadableInput(
            f"{artifact.name} has no line with column names", hint="export with ncu --csv --page details"
        )
    try:
        rows = list(csv.reader(line for line in lines[start:] if not _TABLE.match(line)))
        above = list(csv.reader(lines[:start]))
    except csv.Error as error:
        raise UnreadableInput(f"{artifact.name}: {error}", hint="export it again with ncu --csv") from error
    header = [cell.strip() for cell in rows[0]] if rows else []
    body = [row for row in rows[1:] if any(row)]
    shifted = sum(len(row) > len(header) for row in body)
    if _KEY not in header:
        raise UnreadableInput(f"{artifact.name} has a damaged header line", hint="export it again with ncu --csv")
    launches = _long(header, body, start) if "Metric Name" in header else _wide(header, body, start)
    if not launches:
        yield Note("no kernel was profiled: the table is empty", source)
    yield from facts_of(launches, source)
    key = header.index(_KEY)
    if lost := sum(key < len(row) <= len(header) and bool(row[key]) for row in above):
        yield Note(f"{lost} rows stand above the line with column names and were left out", source, lost=True)
    if shifted:
        yield Note(f"{shifted} lines hold more cells than the header names and were left out", source, lost=True)


def _long(header: list[str], body: list[list[str]], start: int) -> list[Launch]:
    """One metric a line: the details page and the summaries."""
    launches: dict[tuple[str, ...], Launch] = {}
    value_column = next((c for c in ("Metric Value", "Average", "Avg") if c in header), "Metric Value")
    for at, row in enumerate(body):
        cells = dict(zip(header, row, strict=False))
        name = cells.get(_KEY, "")
        if not name or name == _KEY or len(row) > len(header):
            continue
        key = (cells.get("ID", ""), name, cells.get("Grid Size", ""), cells.get("Block Size", ""))
        launch = launches.get(key)
        if launch is None:
            launch = launches[key] = Launch(
                name, f"line {start + at + 2}", cells.get("Grid Size", ""), cells.get("Block Size", ""),
                cells.get("CC", ""), cells.get("Device Name", ""),
            )  # fmt: skip
        metric = cells.get("Metric Name", "")
        if metric:
            launch.add_metric(metric, cells.get(value_column, ""), cells.get("Metric Unit", ""))
        if cells.get("Rule Name"):
            launch.rules.append(
                (cells["Rule Name"], cells.get("Rule Description", ""), cells.get("Estimated Speedup Type", ""),
                 cells.get("Estimated Speedup", ""))
            )  # fmt: skip
    return list(launches.values())


def _wide(header: list[str], body: list[list[str]], start: int) -> list[Launch]:
    """One kernel a line: the raw page. The line after the header holds units, or the names do, as "x [unit]"."""
    key = header.index(_KEY)
    units = [""] * len(header)
    if body and (len(body[0]) <= key or not body[0][key]):
        units, body = body[0], body[1:]
    launches = []
    for at, row in enumerate(body):
        if not key < len(row) <= len(header) or not row[key]:
            continue
        cells = dict(zip(header, row, strict=False))
        launch = Launch(
            row[key], f"line {start + at + 3}", cells.get("Grid Size") or cells.get("launch__grid_size", ""),
            cells.get("Block Size") or cells.get("launch__block_size", ""), cells.get("CC", ""),
            cells.get("device__attribute_display_name", ""),
        )  # fmt: skip
        for column, cell, unit in zip(header, row, units, strict=False):
            if "__" in column or column.startswith("memory_"):
                match = _UNIT_IN_NAME.match(column)
                launch.metrics[match[1] if match else column] = (cell, match[2] if match else unit)
        launches.append(launch)
    return launches
