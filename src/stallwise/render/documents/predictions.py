"""Predicted against measured gains."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePath
from typing import Any

from stallwise.doctor.findings.prediction import Prediction
from stallwise.render.blocks import Column, Document, Number, Verdict, number, seconds, seconds_range, steps, table
from stallwise.render.blocks import document as filled
from stallwise.units import Unit


def document(found: Any, *, deep: bool = False) -> Document:
    """How many ranges held, then each."""
    rows: Sequence[Prediction] = found.rows
    cells = (
        (
            PurePath(r.bundle).name, r.cause, r.trial.name, seconds(r.trial.before_s),
            seconds_range(r.predicted.low_s, r.predicted.high_s), seconds(r.measured_s), Number(r.trial.ratio, Unit.RATIO),
            "inside" if r.inside else r.miss,
        )
        for r in rows
    )  # fmt: skip
    head = (Column("job", 2), Column("cause"), Column("tried", 3), number("step", 4), number("predicted"), number("measured"),
            number("speedup", 1), Column("range"))  # fmt: skip
    verdict = Verdict("No gain was both predicted and tried in these jobs.", tone="unclear")
    if rows:
        inside, middle = sum(r.inside for r in rows), sum(r.middle_inside for r in rows)
        why = f"{middle} measured gains lie in it themselves."
        verdict = Verdict(f"{inside} of {len(rows)} measured intervals meet the predicted range", why)
    return filled(verdict, table("", head, cells), steps("Not read", found.unread), verb="accuracy")


def data(found: Any) -> dict[str, Any]:
    """The JSON contract: rows, and the share of ranges that held, in all and by cause."""
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
