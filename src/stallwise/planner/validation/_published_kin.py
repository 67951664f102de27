"""The second of the three answers, scored: what runs of the same framework and cards say, their publisher left out."""

from __future__ import annotations

from collections.abc import Sequence
from math import exp, log, sqrt
from statistics import fmean, median
from typing import Any

from stallwise.errors import StallwiseError
from stallwise.physics.costs.fitted import publisher_of, table
from stallwise.physics.costs.published_kin import kin_of
from stallwise.physics.costs.spread import NINETY
from stallwise.planner.runs import run_of
from stallwise.planner.scoring import Row, Scored
from stallwise.planner.standing import KNOWN, UNKNOWN


def answers(rows: Sequence[Row], scored: Sequence[Scored]) -> dict[str, Any]:
    """Both answers on the rows whose framework and cards another publisher has run too."""
    by_id = {row.get("row_id", ""): row for row in rows}
    before: list[Scored] = []
    after: list[Scored] = []
    for s in scored:
        if s.answer != KNOWN or not (s.predicted and s.low and s.high and s.measured and s.row_id in by_id):
            continue
        try:
            run = run_of(by_id[s.row_id])
        except StallwiseError:
            continue
        kin = kin_of(run.family, run.recipe.framework, run.cluster.gpu.architecture, without=publisher_of(s.source))
        if kin is None:
            continue
        between = table()["spread"][run.family]["between"]
        sigma = log(s.high / s.low) / 2 / NINETY
        factor = exp(NINETY * sqrt(max(sigma**2 - kin.between**2, 0.0) + between**2))
        seconds = s.predicted / kin.ratio
        after.append(s)
        before.append(
            Scored(s.row_id, s.source, s.metric, s.measured, seconds, seconds / factor, seconds * factor, s.note)
        )
    return {name: _figures(part) for name, part in ((UNKNOWN, before), (KNOWN, after)) if part}


def _figures(scored: Sequence[Scored]) -> dict[str, Any]:
    errors = [abs(e) for s in scored if (e := s.error_pct) is not None]
    return {
        "predicted": len(errors),
        "mean_abs_pct": fmean(errors),
        "median_abs_pct": median(errors),
        "bias_pct": fmean(e for s in scored if (e := s.error_pct) is not None),
        "inside_interval_share": fmean(bool(s.inside) for s in scored),
        "half_width_ratio": median((s.high / s.low) ** 0.5 for s in scored if s.high and s.low),
    }
