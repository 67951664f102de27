"""What a machine has run, as text, as JSON and as a page."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from stallwise.doctor.findings.trend import Moved, Trend
from stallwise.render.answers import Block, Verdict, page
from stallwise.render.answers.trend import blocks_of
from stallwise.render.trend import trend_dict, trend_line, trend_text
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


def history_text(trends: Trends, file: Path | None, elsewhere: int = 0) -> str:
    """Series by series; how many runs of other projects are not among them."""
    if file is None:
        return "No history is kept here: STALLWISE_HISTORY=off."
    others = f"{elsewhere} {'run' if elsewhere == 1 else 'runs'} of other projects: stallwise history --all"
    if not trends:
        return f"{EMPTY}\n{others}" if elsewhere else EMPTY
    lines: list[str] = []
    for series, trend, moved in trends:
        lines += [series, *([f"  last run: {moved_line(moved)}"] if moved else [])]
        lines += [f"  {line}" if line else "" for line in trend_text(trend).split("\n")] + [""]
    return "\n".join([*lines, *([others] if elsewhere else []), f"kept in {file}"])


def history_dict(trends: Trends) -> dict[str, Any]:
    """Plain containers."""
    return {
        "schema": "stallwise.history/1",
        "series": [
            {
                "name": series,
                **trend_dict(trend),
                "against_last_week": {"before": moved.before, "slower_by": moved.ratio - 1.0, "runs": moved.runs}
                if moved
                else None,
            }
            for series, trend, moved in trends
        ],
    }


def history_html(trends: Trends) -> str:
    """One page for all series."""
    if not trends:
        return page(Verdict(EMPTY, "", "", "unclear"), [], verb="history", subject="this project")
    worse = [(series, moved) for series, _, moved in trends if moved and moved.ratio > 1]
    if worse:
        series, moved = worse[0]
        verdict = Verdict(f"{series}: {moved_line(moved)}", "", "", "bad", f"{len(trends)} series")
    else:
        verdict = Verdict(
            "No last run is slower than its week", trend_line(trends[0][1]), "", "good", f"{len(trends)} series"
        )
    blocks: list[Block | None] = [block for series, trend, _ in trends for block in blocks_of(trend, series)]
    return page(verdict, blocks, verb="history", subject="runs of this project")
