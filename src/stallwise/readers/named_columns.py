"""Tables that are known by their titles: launch probes, variants, loads, places (ranks, stages, experts), scaling series.

Which title has which role, and what must be there, is data (named_columns.toml); here is how each kind is judged."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple, TypeGuard

from stallwise.evidence.artifact import Artifact
from stallwise.evidence.catalog import quantities, run, serving
from stallwise.evidence.evidence import Item
from stallwise.evidence.fact import Fact, Scope, Source, Table
from stallwise.evidence.reading import Cell, Rows
from stallwise.late import np
from stallwise.readers._cells import seconds_in, whole_of
from stallwise.readers._patterns import document
from stallwise.readers.records.plain_rows import plain_words
from stallwise.readers.shapes.delimited import table_in

if TYPE_CHECKING:
    from numpy.typing import NDArray

FORMAT = "table of named columns"
SAMPLE_BYTES = 1 << 16
LABEL_WORDS = 5
MIN_ROWS = 2
PLATEAU_GROWTH = 1.05  # more load that raises the rate by less than this has hit something
WITHOUT = {"no", "without", "wo", "off", "removed", "nosync", "async"}
COUNTED = ("gpu", "node")  # "node 1, 2, 4" may be how many; only an index starts at 0
MEASURED = ("each", "time", "same", "rate")


class Named(NamedTuple):
    """A table, its columns by their roles, and the file that it stands in."""

    rows: Rows
    roles: dict[str, list[int]]
    entries: dict[str, dict[str, Any]]
    file: str

    def first(self, role: str) -> list[float]:
        """The numbers of the first column with this role, NaN where there is none."""
        cells: list[Cell] = self.rows.cells[self.roles[role][0]] if role in self.roles else [None] * len(self.rows)
        return [cell if isinstance(cell, float) else np.nan for cell in cells]

    def scale(self, at: int) -> float:
        """What turns a column's numbers into seconds."""
        return seconds_in(plain_words(self.rows.columns[at])) or 1.0


def recognises(name: str, head: bytes) -> bool:
    """A table of which something can be told."""
    return next(_items(head[:SAMPLE_BYTES].decode("utf-8", "replace"), name), None) is not None


def read(artifact: Artifact) -> Iterator[Item]:
    """What each kind that it is of tells."""
    yield from _items(artifact.text(), artifact.name)


def _items(text: str, file: str) -> Iterator[Item]:
    rows = table_in(text)
    yield from read_rows(rows, file) if rows is not None else ()


def read_rows(rows: Rows, file: str) -> Iterator[Item]:
    """The same of a table that somebody has read already."""
    for kind in document("named_columns")["kind"]:
        found = kind_of(kind, rows, file)
        if found is not None:
            yield from JUDGED[kind["judged"]](found)


def kind_of(kind: dict[str, Any], rows: Rows, file: str) -> Named | None:
    """The table with its roles, where it is of this kind."""
    roles: dict[str, list[int]] = {}
    for at, column in enumerate(rows.columns):
        title = re.sub(r"[^\w/]+", "_", column.lower()).strip("_")
        if "never" in kind and re.search(kind["never"], title):
            return None
        timed = seconds_in(plain_words(column)) is not None
        for role in kind["role"]:
            if ("unit" not in role or timed) and (at == 0 or "first" not in role) and re.search(role["match"], title):
                roles.setdefault(role["is"], []).append(at)
                break
    whole = all(any(role in roles for role in needed) for needed in kind["needs"])
    return Named(rows, roles, {role["is"]: role for role in kind["role"]}, file) if whole else None


def _slope(table: Named) -> Iterator[Item]:
    """Seconds a thing counted: by least squares over different counts, else the time over the count."""
    for role in (r for r in table.roles if r != "count"):
        for at in table.roles[role]:
            points = np.array(
                [table.first("count"), [c if isinstance(c, float) else np.nan for c in table.rows.cells[at]]]
            )
            count, took = points[:, np.isfinite(points).all(axis=0)]
            if len(count):
                away = count - count.mean()
                slope = away @ took / (away @ away) if np.any(away) else took[0] / max(count[0], 1.0)
                source = Source(table.file, f"column {table.rows.columns[at]}")
                yield Fact(quantities()[role], float(slope) * table.scale(at), source, samples=len(count))


def _variants(table: Named) -> Iterator[Item]:
    """The time of each variant, and what leaving out the synchronisation won."""
    scale = table.scale(table.roles["run.step_time"][0])
    gain: dict[bool, float] = {}  # with and without
    for name, took, line in zip(
        map(str, table.rows.cells[0]), table.first("run.step_time"), table.rows.places, strict=True
    ):
        if took == took:
            yield Fact(run.STEP_TIME, took * scale, Source(table.file, f"line {line}"), Scope(run=name))
            if "sync" in name.lower():
                gain.setdefault(bool(WITHOUT & set(plain_words(name))), took)
    if len(gain) == 2 and gain[False] > 0:
        yield Fact(run.SYNC_REMOVED_GAIN, 1.0 - gain[True] / gain[False], Source(table.file))


def _plateau(table: Named) -> Iterator[Item]:
    """The rate that more load no longer raises, and how busy the GPU is there."""
    every = zip(*(table.first(role) for role in ("offered", "achieved", "busy")), strict=True)
    found = sorted(row for row in every if row[0] > 0 and row[1] > 0)
    for before, after in pairwise(found):
        if after[0] > before[0] and after[1] < PLATEAU_GROWTH * before[1] and after[1] < after[0] / PLATEAU_GROWTH:
            plateau_facts = {serving.PLATEAU_RATE: after[1], serving.OFFERED_RATE: found[-1][0],
                    serving.ACHIEVED_RATE: found[-1][1], serving.PLATEAU_GPU_BUSY: after[2] / 100}  # fmt: skip
            yield from (
                Fact(quantity, value, Source(table.file)) for quantity, value in plateau_facts.items() if value == value
            )
            return


def _requests(table: Named) -> Iterator[Item]:
    for role, entry in table.entries.items():
        if known := [value for value in table.first(role) if value == value]:
            value = min(known) if entry["of_all"] == "least" else sum(known) / len(known)
            yield Fact(quantities()[role], value, Source(table.file), samples=len(known))


def _places(table: Named) -> Iterator[Item]:
    """One table; times in seconds, what is neither time nor tokens in words."""
    rows = table.rows
    axes = [(role, ats[0]) for role, ats in table.roles.items() if role not in ("times", "tokens", "layers")]
    axis, at = min(axes, key=lambda a: a[0] in COUNTED)  # of a rank on a node the rank
    kept = [(i, place) for i, cell in enumerate(rows.cells[at]) if (place := whole_of(cell)) is not None]
    if len(kept) < MIN_ROWS or (rows.columns[at].lower() in COUNTED and kept[0][1] != 0):
        return
    columns: dict[str, Any] = {axis: np.array([place for _, place in kept], np.int64)}
    meta: dict[str, list[str]] = {"times": [], "tokens": []}
    for number, title in enumerate(rows.columns):
        values = [rows.cells[number][i] for i, _ in kept]
        kind = next((k for k in meta if number in table.roles.get(k, ())), None)
        numeric = all(isinstance(value, float) for value in values)
        if numeric and number in table.roles.get("layers", ()):
            columns["layers"] = np.array(values, np.float64)
        elif number != at and kind is None and not numeric:
            columns[title.lower()] = np.array(
                ["" if v is None else f"{v:g}" if isinstance(v, float) else str(v) for v in values]
            )
        elif kind is not None and numeric:
            columns[title] = np.array(values, np.float64) * (table.scale(number) if kind == "times" else 1.0)
            meta[kind].append(title)
    yield Table(
        "rank_table", columns, Source(table.file, f"{len(kept)} rows"), Scope(run=table.file), {"axis": axis, **meta}
    )


def _staged(table: Named) -> Iterator[Item]:
    """Stages in the order of their rows."""
    counted: list[Cell] = [float(at) for at in range(len(table.rows))]
    rows = Rows(("stage", *table.rows.columns), (counted, *table.rows.cells), table.rows.places)
    roles = {"stage": [0], "times": [at + 1 for at in table.roles["times"]]}
    yield from _places(table._replace(rows=rows, roles=roles))


def _middle_of_each(
    kept: NDArray[Any], ranks: NDArray[Any], labels: list[str], value: NDArray[Any]
) -> tuple[NDArray[Any], list[str], NDArray[Any]]:
    """One row for each number of GPUs: many steps of one size are told by their median."""
    groups: dict[tuple[float, str], list[int]] = {}
    for at, label in zip(kept.tolist(), labels, strict=True):
        groups.setdefault((float(ranks[at]), label), []).append(at)
    if len(groups) == len(kept) or len(groups) < MIN_ROWS:
        return kept, labels, value
    middle = value.copy()
    for rows in groups.values():
        middle[rows[0]] = np.median(value[rows])
    return np.array([rows[0] for rows in groups.values()]), [label for _, label in groups], middle


def _is_label(cell: Cell) -> TypeGuard[str]:
    """Words that name a row; a sentence around it does not."""
    return isinstance(cell, str) and len(cell.split()) <= LABEL_WORDS


def _scaling(table: Named) -> Iterator[Item]:
    """Columns: ranks, nodes (NaN where unknown), seconds (NaN) and rate per GPU (NaN), label."""
    kind = next(role for role in MEASURED if role in table.roles)
    at = table.roles[kind][0]
    nodes, per = np.array(table.first("nodes")), np.array(table.first("per_node"))
    ranks = np.array(table.first("size")) if "size" in table.roles else nodes * np.where(np.isnan(per), 1.0, per)
    value = np.array(table.first(kind))
    kept = np.flatnonzero((ranks >= 1) & (value > 0))
    if len(kept) < MIN_ROWS or ranks[0] == 0:  # a number of GPUs; an index starts at 0
        return
    labels = [" ".join(c for column in table.rows.cells if _is_label(c := column[i])) for i in kept]
    kept, labels, value = _middle_of_each(kept, ranks, labels, value)
    none = np.full(len(kept), np.nan)
    rate = value[kept] / (ranks[kept] if kind == "rate" else 1.0)
    columns = {"ranks": ranks[kept], "nodes": nodes[kept], "seconds": value[kept] * table.scale(at) if kind == "time" else none,
               "rate_each": none if kind == "time" else rate, "label": np.array(labels)}  # fmt: skip
    yield Table(
        "scaling.series", columns, Source(table.file, "line 1"), meta={"measured": table.rows.columns[at].lower()}
    )


JUDGED = {
    "slope": _slope, "variants": _variants, "plateau": _plateau, "requests": _requests, "places": _places, "staged": _staged,
    "scaling": _scaling,
}  # fmt: skip
