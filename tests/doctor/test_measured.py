"""What was tried joins what was found: measured gains in the place of predicted ones, refutations, offers."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from stallwise.doctor.examine import diagnose
from stallwise.doctor.findings.diagnosis import Diagnosis
from stallwise.doctor.predictions import change_of, predictions_of, ratios_of
from stallwise.render.html import to_html
from stallwise.render.json import to_dict
from stallwise.render.text import to_text

TRACE = Path(__file__).parents[2] / "examples" / "traces" / "loader_slow"
STEP_S = 0.112


def trial(name: str, ratio: float, state: str, *causes: str, **more: Any) -> dict[str, Any]:
    return {
        "name": name, "title": name, "causes": list(causes), "state": state, "why": "", "needs": f"do {name}", "risk": "none",
        "before_s": STEP_S, "after_s": STEP_S / ratio, "ratio": ratio, "ratio_low": ratio * 0.98, "ratio_high": ratio * 1.02,
        "pairs": 7, "one_off_s": 0.0, "detectable_ratio": 1.01, **more,
    }  # fmt: skip


def bundle(folder: Path, *trials: dict[str, Any], together: dict[str, Any] | None = None) -> str:
    shutil.copytree(TRACE, folder / "bundle")
    about = {
        "schema": "stallwise.trials/1",
        "step_s": STEP_S,
        "steps_per_block": 8,
        "device": "cuda",
        "kind": "training",
    }
    found = {**about, "detectable_ratio": 1.01, "trials": list(trials), "together": together}
    (folder / "bundle" / "trials.json").write_text(json.dumps(found))
    return str(folder / "bundle")


def finding(diagnosis: Diagnosis, cause: str) -> Any:
    return next(f for f in diagnosis.findings if f.cause == cause)


def test_a_measured_gain_takes_the_place_of_the_predicted_one(tmp_path: Path) -> None:
    diagnosis = diagnose(
        bundle(tmp_path, trial("last-batch-again", 1.95, "faster", "input-starved", removes_cause=True))
    )
    found = finding(diagnosis, "input-starved")
    assert found.gain.measured and found.tried == "last-batch-again" and not found.predicted.measured
    step_s = diagnosis.ledger.whole_s  # of the trace: the trial has a step of its own, and won its part of this one
    assert found.gain.low_s < step_s * (1 - 1 / 1.95) < found.gain.high_s
    assert diagnosis.ranked[0] == "input-starved" and found.fixes[0].action == "do last-batch-again"
    text = to_text(diagnosis)
    assert "measured" in text and "tried  " in text
    answer = to_dict(diagnosis)
    assert answer["trials"][0]["trials"][0]["ratio"] == 1.95
    assert answer["findings"][0]["gain"]["basis"].startswith("measured")
    assert answer["findings"][0]["predicted"]["high_s"] > 0
    assert "What was tried" in to_html(diagnosis)
    assert "predicted" in to_text(diagnosis.trials[0], diagnosis=diagnosis, width=130)


def test_taking_the_whole_cause_away_without_a_difference_refutes_it(tmp_path: Path) -> None:
    diagnosis = diagnose(
        bundle(tmp_path, trial("last-batch-again", 1.0, "no difference", "input-starved", removes_cause=True))
    )
    found = finding(diagnosis, "input-starved")
    assert found.confidence < 0.06 and found.against
    assert diagnosis.ranked[0] != "input-starved"


def test_a_fix_that_did_not_help_speaks_against_and_refutes_nothing(tmp_path: Path) -> None:
    diagnosis = diagnose(bundle(tmp_path, trial("some-fix", 1.0, "no difference", "input-starved")))
    found = finding(diagnosis, "input-starved")
    assert found.confidence > 0.9 and any("tried in this job" in r.text for r in found.against)
    assert not found.gain.measured


def test_an_inconclusive_trial_changes_nothing(tmp_path: Path) -> None:
    before = finding(diagnose(str(TRACE)), "input-starved")
    diagnosis = diagnose(bundle(tmp_path, trial("last-batch-again", 1.2, "inconclusive", "input-starved")))
    after = finding(diagnosis, "input-starved")
    assert after.gain == before.gain and after.predicted is None


def test_a_gain_nobody_expected_is_an_offer(tmp_path: Path) -> None:
    diagnosis = diagnose(bundle(tmp_path, trial("fused-optimizer", 1.3, "faster", "optimizer-unfused")))
    found = finding(diagnosis, "optimizer-unfused")
    assert found.optional and found.gain.measured and diagnosis.ranked[0] == "input-starved"


def test_predictions_are_counted_inside_and_outside(tmp_path: Path) -> None:
    good = bundle(tmp_path / "a", trial("last-batch-again", 1.95, "faster", "input-starved"))
    bad = bundle(tmp_path / "b", trial("last-batch-again", 1.05, "faster", "input-starved"))
    found = predictions_of([good, bad])
    assert [row.inside for row in found.rows] == [True, False]
    assert found.rows[1].miss == "too high" and found.rows[0].miss == ""


def test_the_table_tells_what_could_not_be_tried_and_whether_gains_add(tmp_path: Path) -> None:
    both = {**trial("one + two", 1.7, "faster"), "of": ["one", "two"], "adds": "they add", "if_independent_ratio": 1.72}
    refused = {
        "name": "compile",
        "title": "t",
        "causes": [],
        "state": "not applicable",
        "why": "it is compiled already",
    }
    full = {"name": "no-recompute", "title": "t", "causes": [], "state": "out of memory", "why": "20 GiB"}
    diagnosis = diagnose(bundle(tmp_path, trial("one", 1.3, "faster"), refused, full, together=both))
    said = to_text(diagnosis.trials[0], diagnosis=diagnosis, width=130)
    assert "1.30x (1.27 to 1.33)" in said and "1.72x if they added, 1.70x measured; they add" in said
    assert "it is compiled already" in said and "no-recompute" in said and "out of memory" in said and "20 GiB" in said


@pytest.mark.parametrize(
    "text", ['{"schema": "stallwise.trials/1", "trials": [', '{"schema": "stallwise.trials/1", "trials": [3, {}]}']
)
def test_a_damaged_file_of_trials_does_not_end_a_diagnosis(text: str, tmp_path: Path) -> None:
    shutil.copytree(TRACE, tmp_path / "bundle")
    (tmp_path / "bundle" / "trials.json").write_text(text)
    assert diagnose(str(tmp_path / "bundle")).ranked[0] == "input-starved"


def test_what_was_won_over_what_was_predicted_is_kept_by_change_and_program(tmp_path: Path) -> None:
    won = bundle(tmp_path / "a", trial("last-batch-again", 2.0, "faster", "input-starved"))
    (row,) = ratios_of(won)
    assert row.change == "no-input-wait" and 0.2 < row.ratio < 5
    assert change_of("replayed: with activations kept; it lost time in 1 of 4 measured jobs") == "no-recompute"
    assert not change_of("idle time while the host was elsewhere")
    lost = bundle(tmp_path / "b", trial("last-batch-again", 0.9, "slower", "input-starved"))
    assert ratios_of(lost)[0].ratio < 0
    unsure = bundle(tmp_path / "c", trial("last-batch-again", 1.2, "inconclusive", "input-starved"))
    assert ratios_of(unsure) == ()


def test_shown_to_be_nothing_and_lost_in_the_noise_are_told_apart(tmp_path: Path) -> None:
    sure = trial("no-collector", 1.0, "no difference")
    lost = trial("last-batch-again", 1.04, "inconclusive")
    won = trial("compile", 1.02, "faster")

    def said(name: str, *rows: dict[str, object]) -> str:
        diagnosis = diagnose(bundle(tmp_path / name, *rows))
        return to_text(diagnosis.trials[0], diagnosis=diagnosis, width=130)

    alone = said("a", sure)
    assert "No gain from no-collector" in alone and "Within the noise" not in alone
    both = said("b", sure, lost)
    assert "No gain from no-collector: " in both and "Within the noise of these blocks: last-batch" in both
    assert "No gain from" not in said("c", lost)
    better = said("d", won, lost)  # the noisy one looks better, and is none
    assert "keep   compile" in better and "Within the noise" not in better


def test_a_measured_gain_is_told_of_the_step_it_was_measured_with(tmp_path: Path) -> None:
    # The traced steps were slow; those of the trial took a quarter of them.
    fast = trial("last-batch-again", 3.0, "faster", "input-starved", before_s=STEP_S / 4, after_s=STEP_S / 12)
    said = to_text(diagnose(bundle(tmp_path, fast)))
    assert "(2.94-3.06x), measured" in said
