"""Tables of what took most, laid out for the page, for programs and for data frames."""

from __future__ import annotations

import math
from typing import Any

from stallwise.doctor.findings.diagnosis import Diagnosis
from stallwise.evidence.fact import Table
from stallwise.evidence.top import PREFIX, WHAT
from stallwise.render.document import Part
from stallwise.render.phrases import place
from stallwise.units import Unit, show

TABLES = Part("tables", ("tables",))
LONGEST_NAME = 200  # letters of a cell; the rest is in its title
LEAD_NAME = 60  # letters in a heading
TITLES = {
    "kernels": "Kernels", "operators": "Operators", "python lines": "Lines of Python", "copies": "Copies",
    "collectives": "Collectives", "allocations": "Allocations",
}  # fmt: skip
# A column: its heading, its unit, and what it means.
COLUMNS = {
    "name": ("name", None, ""),
    "work": ("for", None, "what sort of work it is"),
    "kind": ("kind", None, "what the memory holds"),
    "time_s": ("time", Unit.SECOND, "on the device"),
    "host_s": ("own host time", Unit.SECOND, "on the host, without what it calls"),
    "share": ("share", Unit.SHARE, "of the whole"),
    "held_share": ("with callees", Unit.SHARE, "of all samples that have it anywhere in their stack"),
    "idle_s": ("device idle", Unit.SECOND, "how long the device had nothing to do meanwhile"),
    "exposed_s": ("exposed", Unit.SECOND, "with nothing else on the device"),
    "size_bytes": ("bytes", Unit.BYTE, ""),
    "median_bytes": ("median", Unit.BYTE, "of one"),
    "rate_byte_per_s": ("rate", Unit.BYTE_PER_S, ""),
    "bus_byte_per_s": ("bus rate", Unit.BYTE_PER_S, "as nccl-tests counts, of the quickest tenth"),
    "count": ("count", Unit.COUNT, ""),
    "median_s": ("median", Unit.SECOND, "of one"),
    "links_share": ("of node links", Unit.SHARE, "of what the card's links give inside a node; across nodes less can be had"),
    "roof_share": ("of roof", Unit.SHARE, "the least time that the card needs, over the time taken; empty where not known"),
}  # fmt: skip


def shown_tables(diagnosis: Diagnosis) -> dict[str, Table]:
    """One of each sort: that of the rank whose step is shown, else the first."""
    scope = diagnosis.scenes[0].table.scope if diagnosis.scenes else None
    found = {}
    for what in WHAT:
        tables = [t for t in diagnosis.evidence.table(PREFIX + what) if len(t)]
        if tables:
            found[what] = next((t for t in tables if t.scope == scope), tables[0])
    return found


def tables_dict(diagnosis: Diagnosis) -> dict[str, Any]:
    """The same for programs."""
    return {
        what.replace(" ", "_"): {
            "source": str(table.source), "of": table.scope.to_dict(), "per": table.meta["unit"] or None,
            "left_out": table.meta["left_out"], "rows": table_rows(table),
        }
        for what, table in shown_tables(diagnosis).items()
    }  # fmt: skip


def all_rows(diagnosis: Diagnosis) -> dict[str, list[dict[str, Any]]]:
    """By name of the table: the rows of every rank, each with what it is of."""
    found = {}
    for what in WHAT:
        tables = diagnosis.evidence.table(PREFIX + what)
        found[what.replace(" ", "_")] = [{**row, "of": str(t.scope)} for t in tables for row in table_rows(t)]
    return found


def table_rows(table: Table) -> list[dict[str, Any]]:
    """One dict a row; what is not known is None."""
    columns = {key: values.tolist() for key, values in table.columns.items()}
    return [
        {key: None if isinstance(v, float) and not math.isfinite(v) else v for key, v in zip(columns, row, strict=True)}
        for row in zip(*columns.values(), strict=True)
    ]


def tables_parts(diagnosis: Diagnosis) -> dict[str, Any] | None:
    """What the section lays out; None where no table is known."""
    found = shown_tables(diagnosis)
    return {"tables": [_laid_out(what, table) for what, table in found.items()]} if found else None


def _laid_out(what: str, table: Table) -> dict[str, Any]:
    keys = [key for key in table.columns if key in COLUMNS and _known(table, key)]
    rows = table_rows(table)
    first = rows[0]
    unit = table.meta["unit"]
    overlapping = table.meta.get("of", "")
    whole = (
        f"of {overlapping}" if overlapping else f"of a mean {unit}" if unit and "median_bytes" not in keys else "of all"
    )
    lead = f"{len(rows) + table.meta['left_out']:,} in all; first {_cut(str(first['name']), LEAD_NAME)}"
    return {
        "slug": what.replace(" ", "-"),
        "title": TITLES[what],
        "lead": f"{lead}, {show(first['share'], Unit.SHARE)} {whole}",
        "head": [(COLUMNS[key][0], COLUMNS[key][1] is not None, _meaning(key, whole)) for key in keys],
        "rows": [[_cell(key, row[key]) for key in keys] for row in rows],
        "left_out": table.meta["left_out"],
        "per": unit,
        "source": place(table.source),
        "sorted": next((i for i, key in enumerate(keys) if _falls(table, key)), None),
    }


def _meaning(key: str, whole: str) -> str:
    return whole if key == "share" else COLUMNS[key][2]


def _known(table: Table, key: str) -> bool:
    """A column in which nothing is known, or nothing but zeros, says nothing."""
    return any(not isinstance(v, float) or (math.isfinite(v) and v > 0) for v in table.columns[key].tolist())


def _falls(table: Table, key: str) -> bool:
    """Whether the rows are in the order of this column."""
    values = table.columns[key].tolist()
    return COLUMNS[key][1] is not None and all(a >= b for a, b in zip(values, values[1:], strict=False))


def _cell(key: str, value: Any) -> dict[str, Any]:
    unit = COLUMNS[key][1]
    if unit is None:
        text = str(value)
        return {"text": _cut(text), "title": text if key == "name" else "", "sort": text}
    if value is None:
        return {"text": "", "title": "", "sort": -1}
    text = (
        f"{value:,.0f}"
        if unit is Unit.COUNT and value >= 10
        else f"{value:.3g}"
        if unit is Unit.COUNT
        else show(value, unit)
    )
    return {"text": text, "title": "", "sort": f"{value:.6g}"}


def _cut(text: str, most: int = LONGEST_NAME) -> str:
    text = text.removeprefix("void ")  # every template kernel begins so
    return text if len(text) <= most else text[: most - 3] + "..."
