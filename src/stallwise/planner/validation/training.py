"""Step times of published runs (columns as in training.csv), each publisher predicted by constants fitted without it.

The answer scored is the one a plan takes: with what others published for the same framework and cards, where they did.

With `calibrate` the first N rows of a source say how its cluster differs from the mean, as one's own steps would, by
mechanism. Rows without a global batch are scored on what they print, their batch being assumed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations
from statistics import fmean, median
from typing import Any

from stallwise.errors import StallwiseError
from stallwise.physics.costs.constants import Array
from stallwise.physics.costs.fitted import constants_without, publisher_of, table
from stallwise.physics.costs.published_kin import kin_of
from stallwise.planner.knobs import Settings
from stallwise.planner.measured import measured_step_s
from stallwise.planner.predict import MeasuredStep, asked, calibrated, left_between, predict
from stallwise.planner.runs import Run, run_of
from stallwise.planner.scoring import Row, Scored
from stallwise.planner.standing import KNOWN, MEASURED, UNKNOWN
from stallwise.planner.validation._published_kin import answers
from stallwise.progress import shown

KIND = "training"
METRIC = "step_s"
FAMILIES = ("dense-bf16", "dense-fp8", "moe", "lora")


def validate(rows: Sequence[Row], calibrate: int) -> list[Scored]:
    """One prediction per row."""
    scored: list[Scored] = []
    sources = dict.fromkeys(row.get("source", "") for row in rows)
    for source in shown(sources, len(sources), "predicting", "sources"):
        scored += _source([row for row in rows if row.get("source", "") == source], source, calibrate)
    return scored


def _source(rows: Sequence[Row], source: str, calibrate: int) -> list[Scored]:
    scored: list[Scored] = []
    values = constants_without(publisher_of(source))
    own: list[tuple[Run, MeasuredStep]] = []
    for row in rows:
        question = _ask(row, values)
        if isinstance(question, str):
            scored.append(Scored(row.get("row_id", ""), source, METRIC, None, note=question))
            continue
        run, settings = question
        measured = measured_step_s(row, run)
        if len(own) < calibrate:
            if measured:
                own.append((run, MeasuredStep(settings.work, settings.weights, measured)))
            continue
        steps = [replace(step, noise_factor=difference(run, other)) for other, step in own]
        scored.append(_score(row, source, run, settings, measured, values, steps))
    return scored


OTHER_MODEL, OTHER_KIND, OTHER_CARD = 1.5, 2.0, 3.0  # how much less a step says about another model, type or card


def difference(run: Run, other: Run) -> float:
    """How many times noisier a measured step of another run is for predicting this one."""
    return (
        (1.0 if run.model.name == other.model.name else OTHER_MODEL)
        * (1.0 if run.family == other.family else OTHER_KIND)
        * (1.0 if run.cluster.gpu.name == other.cluster.gpu.name else OTHER_CARD)
    )


def _ask(row: Row, values: Array) -> tuple[Run, Settings] | str:
    try:
        return asked(run_of(row), values)
    except StallwiseError as error:
        return error.problem


def _score(
    row: Row, source: str, run: Run, settings: Settings, measured: float | None, values: Array,
    steps: Sequence[MeasuredStep],
) -> Scored:  # fmt: skip
    kin = kin_of(run.family, run.recipe.framework, run.cluster.gpu.architecture, without=publisher_of(source))
    left = None
    if steps:
        spread = table()["spread"][run.family]
        values = calibrated(steps, spread["within"], values)
        left = left_between(steps, spread["between"], spread["within"])
    found = predict(run, settings, values, left=left, kin=kin)
    note = run.family + (f"; open: {', '.join(run.open_knobs)}" if run.open_knobs else "")
    return Scored(
        row.get("row_id", ""),
        source,
        METRIC,
        measured,
        found.seconds,
        found.low_s,
        found.high_s,
        f"{note}; {run.layout.label}",
        MEASURED if steps else KNOWN if kin else UNKNOWN,
    )


def details(rows: Sequence[Row], scored: Sequence[Scored]) -> dict[str, Any]:
    """The same figures by kind of run, and the share of rows answered."""
    by_family: dict[str, Any] = {}
    for family in FAMILIES:
        kind = [s for s in scored if s.note.startswith(family) and s.error_pct is not None]
        if kind:
            errors = [e for s in kind if (e := s.error_pct) is not None]
            by_family[family] = {
                "predicted": len(errors),
                "mean_abs_pct": fmean(map(abs, errors)),
                "median_abs_pct": median(map(abs, errors)),
                "bias_pct": fmean(errors),
                "inside_interval_share": fmean(bool(s.inside) for s in kind),
                "half_width_ratio": median((s.high / s.low) ** 0.5 for s in kind if s.high and s.low),
            }
    answered = sum(s.predicted is not None for s in scored)
    share = answered / len(scored) if scored else 0.0
    return {
        "by_family": by_family, "by_answer": answers(rows, scored), "coverage_share": share, "pairs": pairs(rows, scored),
    }  # fmt: skip


SAME_JOB = ("source", "model", "layers", "hidden", "seq", "gpu", "num_gpus", "global_batch", "precision")
EQUAL_WITHIN = 1.05  # runs closer than this are equal


def pairs(rows: Sequence[Row], scored: Sequence[Scored]) -> dict[str, Any]:
    """Of two layouts of one job that differ by more than 5%, how often the faster is predicted to be the faster."""
    jobs: dict[tuple[str, ...], list[Scored]] = {}
    by_id = {row.get("row_id", ""): row for row in rows}
    for s in scored:
        if s.measured and s.predicted and s.row_id in by_id:
            jobs.setdefault(tuple(by_id[s.row_id].get(c, "") for c in SAME_JOB), []).append(s)
    right = total = 0
    for job in jobs.values():
        for one, other in combinations(job, 2):
            assert one.measured and other.measured and one.predicted and other.predicted
            if max(one.measured / other.measured, other.measured / one.measured) > EQUAL_WITHIN:
                total += 1
                right += (one.measured > other.measured) == (one.predicted > other.predicted)
    return {"pairs": total, "right_order_share": right / total if total else None}
