"""The figures of `plan validate`: how close predictions came to a table of measured runs."""

from __future__ import annotations

from typing import Any

from stallwise.render.blocks import (
    Column,
    Document,
    Facts,
    Number,
    Table,
    Verdict,
    Words,
    count,
    joined,
    number,
    share,
    steps,
    table,
)
from stallwise.render.blocks import document as filled
from stallwise.units import Unit

USUAL_SHARE = 0.9  # that an interval shall hold, where a kind of table does not say another
MOST_SHOWN = 12  # rows not predicted, each with what it lacks
BY = ("family", "answer", "metric", "model", "gpu", "engine")
Figures = dict[str, Any]


def document(figures: Figures, *, rows: bool = False, deep: bool = False) -> Document:
    """A line over all, a line per source, and on request a line per row."""
    pairs, refused = figures.get("pairs"), figures.get("false_does_not_fit_share")
    notes: list[Words] = []
    if pairs and pairs["pairs"]:
        notes.append(
            (
                f"of {pairs['pairs']:,} pairs of one job's layouts, ",
                share(pairs["right_order_share"]),
                " in the right order",
            )
        )
    if refused is not None:
        notes.append(("of the runs that ran, ", share(refused, 1), " would have been refused as not fitting"))
    assumed = figures.get("assumed") or {}
    left = list((figures.get("not_predicted") or {}).items())
    more = [("", f"and {len(left) - MOST_SHOWN} more")] if len(left) > MOST_SHOWN else []
    return filled(
        _verdict(figures),
        _scores(figures),
        steps("", notes),
        Facts(
            tuple((f"{n} rows", what) for what, n in assumed.items()),
            title="Where rows do not say, predicted over everything that may be meant",
        ),
        Facts((*left[:MOST_SHOWN], *more), title=f"{len(left)} rows not predicted"),
        _rows(figures["per_row"]) if rows else None,
        verb="plan validate",
        subject=figures["kind"],
    )


def _verdict(figures: Figures) -> Verdict:
    inside = figures["inside_interval_share"]
    mean = _percent(figures["mean_abs_pct"])
    what = joined(
        (f"{figures['kind']}: {figures['rows_predicted']} of {figures['rows']} rows predicted, mean error ", mean), ""
    )
    usual = share(figures.get("interval_share", USUAL_SHARE))
    held: Words = (share(inside), " inside the ", usual, " interval") if inside is not None else ""
    return Verdict(what, held)


def _scores(figures: Figures) -> Table:
    """All, each publisher once, each source, and each other column of the table."""
    found = [_score("all", figures)]
    by = figures.get("by_publisher", {})
    if by.get("publishers", 0) > 1:
        held = by["inside_interval_share"]
        inside: Words = share(held) if held is not None else "-"
        found.append(
            (f"every publisher once ({by['publishers']})", "", "", _percent(by["mean_abs_pct"]), "", inside, "")
        )
        found += [_score(name, part) for name, part in by["each"].items()]
    found += [_score(name, part) for name, part in figures["by_source"].items()]
    for column in BY:
        found += _parts(figures.get(f"by_{column}", {}))
    head = (Column("rows of"), number("each"), number("median", 1), number("mean"), number("bias", 2),
            number("inside interval"), Column("points", 3))  # fmt: skip
    return table("Error of the prediction", head, found)


def _parts(parts: Figures) -> list[tuple[Words, ...]]:
    """Figures by metric, or by metric and something else."""
    found = []
    for name, part in parts.items():
        if "predicted" in part:
            found.append(_score(name, part))
        else:
            found += [_score(f"{name}  {inner}", figures) for inner, figures in part.items() if figures["predicted"]]
    return found


def _score(name: str, part: Figures) -> tuple[Words, ...]:
    inside = part["inside_interval_share"]
    points = (
        f"mean {part['mean_abs_points']:.2f}, worst {part['worst_abs_points']:.2f}"
        if "worst_abs_points" in part
        else ""
    )
    return (
        name, count(part["predicted"]), *(_percent(part[key]) for key in ("median_abs_pct", "mean_abs_pct", "bias_pct")),
        "-" if inside is None else share(inside), points,
    )  # fmt: skip


def _rows(rows: list[Figures]) -> Table:
    head = (
        Column("row"),
        Column("source", 1),
        number("predicted"),
        number("measured"),
        number("error"),
        Column("note", 2),
    )
    return table("Row by row", head, map(_row, rows))


def _row(row: Figures) -> tuple[Words, ...]:
    if row["predicted"] is None:
        return (row["row_id"], row["source"], "-", "", "", f"not predicted: {row['note']}")
    error: Words = f"{row['error_points']:+.2f} points" if "error_points" in row else _percent(row["error_pct"])
    measured = "?" if row["measured"] is None else f"{row['measured']:.6g}"
    return (row["row_id"], row["source"], f"{row['predicted']:.6g}", measured, error, "")


def _percent(value: float | None) -> Words:
    return "-" if value is None else Number(value / 100, Unit.SHARE, f"{value:.1f}%")
