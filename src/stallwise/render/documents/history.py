"""What a machine has run: a trend for each series, and the last run against the week before it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from stallwise.doctor.findings.trend import Moved, Trend
from stallwise.render.blocks import Document, Group, Note, Verdict
from stallwise.render.blocks import document as filled
from stallwise.render.documents.trend import blocks, trend_line
from stallwise.render.documents.trend import data as trend_data
from stallwise.units import show

Trends = Sequence[tuple[str, Trend, Moved | None]]
EMPTY = "No run of this project is remembered yet. stallwise run -- python train.py, or stallwise diagnose RUN_DIR/, keeps one."


def moved_line(moved: Moved) -> str:
    """The last run against the week before it."""
    word = "slower" if moved.ratio > 1 else "faster"
    by = moved.ratio - 1.0 if moved.ratio > 1 else 1.0 / moved.ratio - 1.0
    return (
        f"{moved.metric} {show(moved.value, moved.unit)}: {by:.1%} {word} than the {moved.runs} runs of the week before "
        f"({show(moved.before, moved.unit)})"
    )


def document(trends: Trends, file: Path | None, elsewhere: int = 0, *, deep: bool = False) -> Document:
    """Series by series; how many runs of other projects are not among them."""
    others = f"{elsewhere} {'run' if elsewhere == 1 else 'runs'} of other projects: stallwise history --all"
    kept = f"kept in {file}" if trends else ""
    rows = []
    for series, trend, moved in trends:
        last = (Note(f"last run: {moved_line(moved)}"),) if moved else ()
        rows.append(Group((Note(trend_line(trend)), *last, *blocks(trend, series, deep=deep))))
    return filled(
        _verdict(trends, file),
        *rows,
        Note(others if elsewhere else ""),
        Note(kept),
        verb="history",
        subject="this project",
    )


def _verdict(trends: Trends, file: Path | None) -> Verdict:
    if file is None:
        return Verdict("No history is kept here: STALLWISE_HISTORY=off.", tone="unclear")
    if not trends:
        return Verdict(EMPTY, tone="unclear")
    worse = next(((series, moved) for series, _, moved in trends if moved and moved.ratio > 1), None)
    tail = f"{len(trends)} series"
    if worse:
        return Verdict(f"{worse[0]}: {moved_line(worse[1])}", tone="bad", tail=tail)
    return Verdict("No last run is slower than its week", tone="good", tail=tail)


def data(trends: Trends) -> dict[str, Any]:
    """The JSON contract."""
    return {
        "schema": "stallwise.history/1",
        "series": [
            {
                "name": series,
                **trend_data(trend),
                "against_last_week": {"before": moved.before, "slower_by": moved.ratio - 1.0, "runs": moved.runs}
                if moved
                else None,
            }
            for series, trend, moved in trends
        ],
    }
