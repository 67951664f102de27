"""Predictions of many jobs against the trials of the same jobs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from stallwise.doctor.examine import diagnose
from stallwise.doctor.measured import tried_for
from stallwise.errors import StallwiseError
from stallwise.findings.prediction import Prediction


@dataclass(frozen=True, slots=True)
class Predictions:
    """All that could be compared, and what could not be read."""

    rows: tuple[Prediction, ...]
    unread: tuple[str, ...]


def predictions_of(bundles: Iterable[str]) -> Predictions:
    """Each finding whose gain was tried in its own job; the best trial of each cause."""
    rows: list[Prediction] = []
    unread: list[str] = []
    for bundle in bundles:
        try:
            diagnosis = diagnose(bundle)
        except StallwiseError as error:
            unread.append(f"{bundle}: {error.problem}")
            continue
        for finding in diagnosis.findings:
            trial = tried_for(finding, diagnosis.trials)
            if finding.predicted is not None and trial is not None:
                rows.append(Prediction(bundle, finding.cause, trial, finding.predicted))
    return Predictions(tuple(rows), tuple(unread))
