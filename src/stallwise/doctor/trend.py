"""Several runs in the order of time: how fast each was, where the level changed, and what changed there."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from stallwise.doctor.compare import compared
from stallwise.doctor.examine import diagnose
from stallwise.doctor.findings.diagnosis import Diagnosis
from stallwise.doctor.findings.trend import RunPoint, Shift, Trend
from stallwise.doctor.levels import Level, level_changes, noise_share
from stallwise.doctor.speed import speeds_of
from stallwise.progress import shown
from stallwise.units import Unit


def trend(runs: Sequence[str]) -> Trend:
    """Diagnoses each run and judges the series."""
    diagnoses = [diagnose(run) for run in shown(runs, len(runs), "diagnosing", "runs")]
    names = _short(runs)
    speeds_by_run = [speeds_of(d) for d in diagnoses]
    counts = Counter(words for speeds in speeds_by_run for words in speeds)
    order = list(dict.fromkeys(words for speeds in speeds_by_run for words in speeds))
    metric = max(order, key=lambda words: (counts[words], -order.index(words)), default="")
    having = [s[metric] for s in speeds_by_run if metric in s]
    points = tuple(
        RunPoint(
            name,
            speeds[metric].value if metric in speeds else None,
            d.state.value,
            d.ranked[0] if d.ranked and not d.healthy else "",
        )
        for name, speeds, d in zip(names, speeds_by_run, diagnoses, strict=True)
    )
    found = judged(metric, having[0].unit if having else Unit.SECOND, bool(having and having[0].rate), points)
    return replace(found, shifts=tuple(_explained(shift, points, diagnoses) for shift in found.shifts))


def judged(metric: str, unit: Unit, rate: bool, points: tuple[RunPoint, ...]) -> Trend:
    """The series with its changes; runs that do not tell the measure are passed over."""
    places = [i for i, p in enumerate(points) if p.value is not None and p.value > 0]
    sign = -1.0 if rate else 1.0
    logs = np.array([sign * math.log(points[i].value or 1.0) for i in places])
    levels = level_changes(logs)
    return Trend(
        metric,
        unit,
        rate,
        points,
        tuple(_shifts(logs, levels, places, sign)),
        noise_share(logs, levels) if len(logs) else 0.0,
    )


def _shifts(logs: np.ndarray, levels: list[Level], places: list[int], sign: float) -> list[Shift]:
    edges = [0, *(level.at for level in levels), len(logs)]
    means = [float(logs[a:b].mean()) for a, b in zip(edges, edges[1:], strict=False)] if len(logs) else []
    return [
        Shift(places[level.at], math.exp(sign * means[n]), math.exp(sign * means[n + 1]),
              math.exp(means[n + 1] - means[n]), level.against)
        for n, level in enumerate(levels)
    ]  # fmt: skip


def _explained(shift: Shift, points: tuple[RunPoint, ...], diagnoses: list[Diagnosis]) -> Shift:
    """What differs between the last run before the change and the first one after it."""
    before = max(i for i in range(shift.at) if points[i].value is not None)
    return replace(shift, why=compared(diagnoses[before], diagnoses[shift.at]))


def _short(runs: Sequence[str]) -> list[str]:
    """Names without what all of them share."""
    parts = [Path(run).parts for run in runs]
    same = 0
    while all(len(p) > same + 1 for p in parts) and len({p[same] for p in parts}) == 1:
        same += 1
    return ["/".join(p[same:]) or run for p, run in zip(parts, runs, strict=True)]
