"""Predictions of many jobs against the trials of the same jobs."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from stallwise.doctor.examine import diagnose
from stallwise.doctor.findings.prediction import Prediction
from stallwise.doctor.findings.trial import FASTER, NOTHING, SLOWER
from stallwise.doctor.measured import tried_for
from stallwise.errors import StallwiseError
from stallwise.evidence.catalog import gains
from stallwise.physics.costs.gain_doubt import Ratio


@dataclass(frozen=True, slots=True)
class Predictions:
    """All that could be compared, and what could not be read."""

    rows: tuple[Prediction, ...]
    unread: tuple[str, ...]


def ratios_of(bundle: str) -> tuple[Ratio, ...]:
    """What each conclusive trial won over what the replay of the same job had said; zero or less where it lost time."""
    found = []
    for row in predictions_of([bundle]).rows:
        likely_s, change = row.predicted.likely_s, change_of(row.predicted.basis)
        if change and likely_s and row.trial.state in (FASTER, NOTHING, SLOWER):
            found.append(Ratio(change, _workload(bundle), row.trial.saved_s(row.trial.ratio) / likely_s))
    return tuple(found)


def change_of(basis: str) -> str:
    """The replayed change that a gain rests on; "" where it was not replayed."""
    how = basis.partition("replayed: ")[2].partition(";")[0]
    return next((c for c, q in gains.OF_CHANGE.items() if how and q.meaning.endswith(f"replayed {how}")), "")


def _workload(bundle: str) -> str:
    """The program without its arguments' values: a name and a mark that tells two of one name apart; nothing else of the command."""
    try:
        line = [str(word) for word in json.loads((Path(bundle) / "bundle.json").read_text()).get("command", [])]
    except (OSError, ValueError):
        line = [bundle]
    name = next((Path(word).stem for word in line if word.endswith(".py")), "job")
    return f"{re.sub(r'[^A-Za-z0-9_]', '_', name)[:32]}-{hashlib.sha256(chr(0).join(line).encode()).hexdigest()[:6]}"


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
