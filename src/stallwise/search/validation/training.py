"""Step times of published runs (columns as in training.csv), each source predicted by constants fitted without it.

With `calibrate` the first N rows of a source move the constants for the rest of that source, as one's own steps would.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean, median
from typing import Any

from stallwise.costs.constants import Array
from stallwise.costs.fitted import constants_without
from stallwise.costs.work import Work
from stallwise.errors import StallwiseError
from stallwise.search.measured import measured_step_s
from stallwise.search.predict import calibrate as move
from stallwise.search.predict import predict, work_of
from stallwise.search.runs import Run, run_of
from stallwise.search.scoring import Row, Scored

KIND = "training"
METRIC = "step_s"


def validate(rows: Sequence[Row], calibrate: int) -> list[Scored]:
    """One prediction per row."""
    scored: list[Scored] = []
    for source in dict.fromkeys(row.get("source", "") for row in rows):
        scored += _source([row for row in rows if row.get("source", "") == source], source, calibrate)
    return scored


def _source(rows: Sequence[Row], source: str, calibrate: int) -> list[Scored]:
    scored: list[Scored] = []
    values = constants_without(source)
    known: list[tuple[Work, float]] = []
    seen: set[tuple[str, str]] = set()  # models and GPUs the calibration has met: only for these does it narrow
    for i, row in enumerate(rows):
        asked = _ask(row)
        if isinstance(asked, str):
            scored.append(Scored(row.get("row_id", ""), source, METRIC, None, note=asked))
            continue
        run, work = asked
        measured = measured_step_s(row, run)
        if i < calibrate:
            if measured:
                known.append((work, measured))
                seen.add((run.model.name, run.cluster.gpu.name))
                values = move([w for w, _ in known], [s for _, s in known], constants_without(source))
            continue
        met = (run.model.name, run.cluster.gpu.name) in seen
        scored.append(_score(row, source, run, work, measured, values, met))
    return scored


def _ask(row: Row) -> tuple[Run, Work] | str:
    try:
        return work_of(run_of(row))
    except StallwiseError as error:
        return error.problem


def _score(
    row: Row, source: str, run: Run, work: Work, measured: float | None, values: Array, calibrated: bool
) -> Scored:
    found = predict(run, work, values, calibrated=calibrated)
    note = run.family + (f"; chosen: {', '.join(run.open_knobs)}" if run.open_knobs else "")
    return Scored(
        row.get("row_id", ""),
        source,
        METRIC,
        measured,
        found.seconds,
        found.low_s,
        found.high_s,
        f"{note}; {run.layout.label}",
    )


def details(rows: Sequence[Row], scored: Sequence[Scored]) -> dict[str, Any]:
    """The same figures by kind of run, and the share of rows answered."""
    by_family: dict[str, Any] = {}
    for family in ("dense-bf16", "dense-fp8", "moe"):
        errors = [s.error_pct for s in scored if s.note.startswith(family) and s.error_pct is not None]
        inside = [
            s.low <= s.measured <= s.high
            for s in scored
            if s.note.startswith(family) and s.measured and s.low is not None and s.high is not None
        ]
        if errors:
            by_family[family] = {
                "predicted": len(errors),
                "mean_abs_pct": fmean(map(abs, errors)),
                "median_abs_pct": median(map(abs, errors)),
                "bias_pct": fmean(errors),
                "inside_interval_share": fmean(inside) if inside else None,
            }
    answered = sum(s.predicted is not None for s in scored)
    return {"by_family": by_family, "coverage_share": answered / len(scored) if scored else 0.0}
