"""Tables in other clothes."""

from __future__ import annotations

import csv
import html
import io
import json
import re
from collections.abc import Callable

from .files import File, is_table, of_each, rows_of, value

FEW = 12  # rows that somebody would lay on their side
FACTORS = {  # unit at the end of a column: its other name and how many of it one is
    "ms": ("us", 1e3), "us": ("ms", 1e-3), "s": ("ms", 1e3), "gb": ("mb", 1e3), "mib": ("gib", 1 / 1024),
    "gib": ("mib", 1024.0), "W": ("kW", 1e-3), "MHz": ("GHz", 1e-3), "MiB": ("GiB", 1 / 1024), "w": ("kw", 1e-3),
    "pct": ("fraction", 0.01), "percent": ("fraction", 0.01), "%": ("fraction", 0.01), "mhz": ("ghz", 1e-3),
}  # fmt: skip


def _csv(rows: list[list[str]], **how: object) -> str:
    out = io.StringIO()
    csv.writer(out, lineterminator="\n", **how).writerows(rows)  # type: ignore[arg-type]
    return out.getvalue()


def _dicts(file: File) -> list[dict[str, object]]:
    head, *body = rows_of(file)
    return [{k: value(v) for k, v in zip(head, row, strict=True)} for row in body]


def _padded(rows: list[list[str]], right: bool) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    turn = str.rjust if right else str.ljust
    return ["  ".join(turn(c, w) for c, w in zip(row, widths, strict=True)).rstrip() for row in rows]


def _is_full(file: File) -> bool:
    return is_table(file) and all(c for row in rows_of(file) for c in row)


@of_each(is_table)
def yaml_rows(f: File) -> File:
    """A YAML list of mappings."""
    lines = []
    for row in _dicts(f):
        pairs = [f"{k}: {json.dumps(v) if isinstance(v, str) or v is None else v}" for k, v in row.items()]
        lines += ["- " + pairs[0]] + ["  " + p for p in pairs[1:]]
    return f.said("\n".join(lines) + "\n", ".yaml")


@of_each(is_table)
def json_lines(f: File) -> File:
    """An object a line."""
    return f.said("".join(json.dumps(row) + "\n" for row in _dicts(f)), ".jsonl")


@of_each(is_table)
def json_nested(f: File) -> File:
    """The rows as a service answers with them."""
    return f.said(json.dumps({"status": "ok", "data": {"count": len(_dicts(f)), "rows": _dicts(f)}}), ".json")


@of_each(is_table)
def json_columns(f: File) -> File:
    """A list a column, as a data frame prints itself."""
    rows = _dicts(f)
    return f.said(json.dumps({k: [row[k] for row in rows] for k in rows[0]}), ".json")


@of_each(is_table)
def json_split(f: File) -> File:
    """Names of the columns once, and rows as lists."""
    rows = _dicts(f)
    return f.said(json.dumps({"columns": list(rows[0]), "data": [list(r.values()) for r in rows]}), ".json")


@of_each(is_table)
def xml_rows(f: File) -> File:
    """An element a row and an element a cell."""
    out = ["<?xml version='1.0' encoding='utf-8'?>", "<data>"]
    for row in _dicts(f):
        out.append("  <row>")
        for key, cell in row.items():
            tag = re.sub(r"[^A-Za-z0-9_.-]+", "_", key).strip("_") or "index"
            out.append(f"    <{tag}>{html.escape('' if cell is None else str(cell))}</{tag}>")
        out.append("  </row>")
    return f.said("\n".join([*out, "</data>"]) + "\n", ".xml")


@of_each(is_table)
def html_table(f: File) -> File:
    """A table of a saved page."""
    head, *body = [[html.escape(c) for c in row] for row in rows_of(f)]
    rows = "\n".join("<tr>" + "".join(f"<td>{c}</td>" for c in row) + "</tr>" for row in body)
    top = "".join(f"<th>{c}</th>" for c in head)
    page = f"<html><body>\n<table border=1>\n<thead><tr>{top}</tr></thead>\n<tbody>\n{rows}\n</tbody>\n</table>\n</body></html>\n"
    return f.said(page, ".html")


@of_each(is_table)
def markdown_table(f: File) -> File:
    """As somebody pastes it into an issue."""
    head, *body = rows_of(f)
    lines = ["| " + " | ".join(row) + " |" for row in (head, ["---"] * len(head), *body)]
    return f.said("Here is what we measured:\n\n" + "\n".join(lines) + "\n", ".md")


@of_each(is_table)
def box_table(f: File) -> File:
    """As a database's client draws it."""
    rows = rows_of(f)
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    rule = "+" + "+".join("-" * (w + 2) for w in widths) + "+"
    drawn = ["| " + " | ".join(c.ljust(w) for c, w in zip(r, widths, strict=True)) + " |" for r in rows]
    return f.said("\n".join([rule, drawn[0], rule, *drawn[1:], rule]) + "\n", ".txt")


@of_each(_is_full)
def column_t(f: File) -> File:
    """`column -t -s,`."""
    return f.said("\n".join(_padded(rows_of(f), right=False)) + "\n", ".txt")


@of_each(is_table)
def data_frame(f: File) -> File:
    """A printed data frame: flush right, a number before each row, NaN for nothing."""
    head, *body = rows_of(f)
    rows = [["", *head], *[[str(i), *[c or "NaN" for c in row]] for i, row in enumerate(body)]]
    return f.said("\n".join(_padded(rows, right=True)) + "\n", ".txt")


@of_each(is_table)
def decimal_commas(f: File) -> File:
    """A spreadsheet of a country that writes 1,5."""
    rows = [[c.replace(".", ",") if isinstance(value(c), float) else c for c in row] for row in rows_of(f)]
    return f.said(_csv(rows, delimiter=";"))


@of_each(is_table)
def spreadsheet(f: File) -> File:
    """All cells quoted, a mark of the byte order in front, other line ends."""
    return f.said("\ufeff" + _csv(rows_of(f), quoting=csv.QUOTE_ALL).replace("\n", "\r\n"))


@of_each(is_table)
def other_order(f: File) -> File:
    """The columns from right to left."""
    return f.said(_csv([row[::-1] for row in rows_of(f)]))


@of_each(lambda f: is_table(f) and len(rows_of(f)) <= FEW)
def on_its_side(f: File) -> File:
    """A row a quantity."""
    return f.said(_csv([list(column) for column in zip(*rows_of(f), strict=True)]))


@of_each(lambda f: is_table(f) and len(rows_of(f)) <= FEW)
def row_blocks(f: File) -> File:
    """A block of `key: value` a row, as a client prints it with \\x or \\G."""
    head, *body = rows_of(f)
    wide = max(map(len, head))
    blocks = [
        f"-[ RECORD {i} ]{'-' * wide}\n" + "\n".join(f"{k.ljust(wide)} | {c}" for k, c in zip(head, row, strict=True))
        for i, row in enumerate(body, 1)
    ]
    return f.said("\n".join(blocks) + "\n", ".txt")


def _renamed(spell: Callable[[str], str]) -> Callable[[File], File]:
    def change(f: File) -> File:
        head, *body = rows_of(f)
        return f.said(_csv([[spell(c) for c in head], *body]))

    return change


@of_each(is_table)
def titles(f: File) -> File:
    """Columns named as in a report: `Step Time (ms)`."""

    def spell(key: str) -> str:
        words = re.sub(r"_(ms|us|s|gb|mib|gib|mb|pct|w|mhz)$", r" (\1)", key).replace("_", " ")
        return " ".join(w if w[:1] in "([" else w[:1].upper() + w[1:] for w in words.split())

    return _renamed(spell)(f)


@of_each(is_table)
def dashes(f: File) -> File:
    """Columns named with dashes."""
    return _renamed(lambda key: key.replace("_", "-").replace(" ", "-"))(f)


@of_each(is_table)
def shouted(f: File) -> File:
    """Columns named in capitals."""
    return _renamed(str.upper)(f)


@of_each(is_table)
def other_units(f: File) -> File:
    """Every column with a known unit in another one."""
    head, *body = rows_of(f)
    columns = [list(c) for c in zip(*body, strict=True)]
    for i, key in enumerate(head):
        found = re.search(r"(?<=[_\[( ])([A-Za-z]+|%)(?=[\])]?$)", key)
        if not found or found[1] not in FACTORS or re.search(r"_per_|/", key):
            continue
        name, factor = FACTORS[found[1]]
        told = [re.sub(rf"\s*{re.escape(found[1])}$", "", c) for c in columns[i]]
        if not all(c == "" or isinstance(value(c), int | float) for c in told):
            continue
        head[i] = key[: found.start()] + name + key[found.end() :]
        columns[i] = [f"{float(c) * factor:.9g}" if c else c for c in told]
    return f.said(_csv([head, *[list(r) for r in zip(*columns, strict=True)]]))


@of_each(is_table)
def thousands(f: File) -> File:
    """Large numbers with a comma in them."""
    rows = [[f"{int(c):,}" if re.fullmatch(r"[1-9]\d{4,}", c) else c for c in row] for row in rows_of(f)]
    return f.said(_csv(rows))
