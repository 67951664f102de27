"""Predicted against measured gains, as a table."""

from __future__ import annotations

import io
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table

from stallwise.doctor.findings.prediction import Prediction
from stallwise.units import Unit, show

if TYPE_CHECKING:
    from collections.abc import Sequence


def to_dict(found: Any) -> dict[str, Any]:
    """Rows and the share of ranges that held, in all and by cause."""
    rows: Sequence[Prediction] = found.rows
    causes = sorted({r.cause for r in rows})
    return {
        "rows": [_row(r) for r in rows],
        "compared": len(rows),
        "inside": sum(r.inside for r in rows),
        "middle_inside": sum(r.middle_inside for r in rows),
        "inside_share": sum(r.inside for r in rows) / len(rows) if rows else None,
        "by_cause": {c: [sum(r.inside for r in rows if r.cause == c), sum(r.cause == c for r in rows)] for c in causes},
        "unread": list(found.unread),
    }


def _row(row: Prediction) -> dict[str, Any]:
    return {
        "bundle": row.bundle,
        "cause": row.cause,
        "trial": row.trial.name,
        "step_s": row.trial.before_s,
        "predicted_low_s": row.predicted.low_s,
        "predicted_high_s": row.predicted.high_s,
        "measured_s": row.measured_s,
        "measured_low_s": row.trial.saved_s(row.trial.low),
        "measured_high_s": row.trial.saved_s(row.trial.high),
        "inside": row.inside,
        "middle_inside": row.middle_inside,
        "miss": row.miss,
        "basis": row.predicted.basis,
    }


def to_text(found: Any) -> str:
    """The table for a terminal."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for head in ("job", "cause", "tried", "step", "predicted", "measured", ""):
        table.add_column(head, justify="right" if head == "step" else "left", no_wrap=True)
    for row in found.rows:
        low, high = row.predicted.low_s, row.predicted.high_s
        table.add_row(
            PurePath(row.bundle).name,
            row.cause,
            row.trial.name,
            show(row.trial.before_s, Unit.SECOND),
            f"{show(low, Unit.SECOND)} to {show(high, Unit.SECOND)}",
            f"{show(row.measured_s, Unit.SECOND)} ({row.trial.ratio:.2f}x)",
            "inside" if row.inside else row.miss,
        )
    file = io.StringIO()
    console = Console(file=file, width=160, highlight=False)
    if found.rows:
        console.print(table)
    answer = to_dict(found)
    if found.rows:
        console.print(
            f"{answer['inside']} of {answer['compared']} measured intervals meet the predicted range; "
            f"{answer['middle_inside']} measured gains lie in it themselves"
        )
    else:
        console.print("no gain was both predicted and tried in these jobs")
    for line in found.unread:
        console.print(f"not read: {line}")
    return "\n".join(line.rstrip() for line in file.getvalue().splitlines())
