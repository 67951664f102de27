"""Tables of what took most: blocks, plain data and rows of data frames."""

from __future__ import annotations

import math
from typing import Any

from stallwise.doctor.findings.diagnosis import Diagnosis
from stallwise.evidence.fact import Table
from stallwise.evidence.top import PREFIX, WHAT
from stallwise.render import blocks
from stallwise.render.blocks import Column, Depth, Group, Number, Tab, Words
from stallwise.render.phrases import place
from stallwise.units import Unit, show

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
    "roof_share": ("of roofline", Unit.SHARE, "the least time that the card needs, over the time taken; empty where not known"),
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


def tables_blocks(diagnosis: Diagnosis) -> list[Group]:
    """What took most time and what most memory, a table each; the first is open."""
    found = shown_tables(diagnosis)
    of_memory = {what: table for what, table in found.items() if what == "allocations"}
    of_time = {what: table for what, table in found.items() if what not in of_memory}
    return [
        Group(
            tuple(_laid_out(what, table, is_open=n == 0) for n, (what, table) in enumerate(tables.items())),
            title=title, depth=Depth.PAGE, slug=slug, tab=tab,
        )
        for tables, title, slug, tab in (
            (of_time, "What took most time", "top", Tab.KERNELS), (of_memory, "What took most memory", "held", Tab.MEMORY)
        )
    ]  # fmt: skip


def _laid_out(what: str, table: Table, *, is_open: bool) -> blocks.Table:
    keys = [key for key in table.columns if key in COLUMNS and _known(table, key)]
    rows = table_rows(table)
    unit, left_out = table.meta["unit"], table.meta["left_out"]
    overlapping = table.meta.get("of", "")
    whole = (
        f"of {overlapping}" if overlapping else f"of a mean {unit}" if unit and "median_bytes" not in keys else "of all"
    )
    first = f"first {_cut(str(rows[0]['name']), LEAD_NAME)}, {show(rows[0]['share'], Unit.SHARE)} {whole}"
    per = f"Times, counts and bytes are those of a mean {unit}. " if unit else ""
    more = f"{left_out} more below these. " if left_out else ""
    columns = [
        Column(COLUMNS[key][0], right=COLUMNS[key][1] is not None, hint=whole if key == "share" else COLUMNS[key][2])
        for key in keys
    ]
    return blocks.table(
        "", columns, ([_cell(key, row[key]) for key in keys] for row in rows),
        note=f"{per}{more}From {place(table.source)}.", slug=what.replace(" ", "-"), depth=Depth.PAGE,
        is_open=is_open,
        folded=f"{TITLES[what]}: {len(rows) + left_out:,} in all; {first}",
    )  # fmt: skip


def _known(table: Table, key: str) -> bool:
    """A column in which nothing is known, or nothing but zeros, says nothing."""
    return any(not isinstance(v, float) or (math.isfinite(v) and v > 0) for v in table.columns[key].tolist())


def _cell(key: str, value: Any) -> Words:
    unit = COLUMNS[key][1]
    if unit is None:
        return _cut(str(value))
    if value is None:
        return ""
    if unit is Unit.COUNT:
        return Number(value, unit, f"{value:,.0f}" if value >= 10 else f"{value:.3g}")
    return Number(value, unit)


def _cut(text: str, most: int = LONGEST_NAME) -> str:
    text = text.removeprefix("void ")  # every template kernel begins so
    return text if len(text) <= most else text[: most - 3] + "..."
