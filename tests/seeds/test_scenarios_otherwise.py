"""The eight scenarios with other numbers, models and words than their document's: cause, its numbers, the first fix, the trap."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from stallwise.doctor.examine import diagnose
from stallwise.doctor.findings.diagnosis import Diagnosis, State
from stallwise.render.text import to_text

CASES = {
    name: (row["cause"], row["says"], row["fix"], row["text"])
    for name, row in tomllib.loads((Path(__file__).parent / "otherwise.toml").read_text(encoding="utf-8")).items()
}


@pytest.fixture(scope="module", params=sorted(CASES))
def answered(request: pytest.FixtureRequest) -> tuple[str, Diagnosis, str]:
    found = diagnose(CASES[request.param][3], cache=False)
    return request.param, found, " ".join(to_text(found, width=4000).split())


def test_the_cause_comes_first_and_is_said(answered: tuple[str, Diagnosis, str]) -> None:
    name, found, _ = answered
    assert found.ranked[0] == CASES[name][0]
    assert found.state is State.SICK


def test_its_numbers_are_in_the_arithmetic(answered: tuple[str, Diagnosis, str]) -> None:
    name, _, text = answered
    assert not [wanted for wanted in CASES[name][1] if not re.search(wanted, text)], text


def test_the_first_fix_is_its_own_and_a_warning_stands_beside_it(answered: tuple[str, Diagnosis, str]) -> None:
    name, found, _ = answered
    first = found.findings[0]
    assert re.search(CASES[name][2], first.fixes[0].action)
    assert first.avoid
    assert not re.search(r"\bnan\b|Traceback", " ".join(r.text for r in first.because))


def test_what_is_denied_is_no_rival() -> None:
    told = "PP=8, 32 microbatches, bubble expected 22%, measured 41%."
    open_, denied = (diagnose(f"{told} {more}", cache=False).findings[0] for more in ("", "No stragglers."))
    assert "straggler-rank" in {r.cause for r in open_.rivals}
    assert "straggler-rank" not in {r.cause for r in denied.rivals}


def test_a_bubble_that_the_schedule_explains_is_no_imbalance() -> None:
    found = diagnose("PP=8, 32 microbatches, 1F1B, measured bubble 18% of the step. Is it good?", cache=False)
    assert all(f.cause != "pipeline-stage-imbalance" or f.recognised for f in found.findings)


def test_speed_alone_is_no_failed_allocation() -> None:
    found = diagnose("MFU fell from 45% to 30% on 64 GPUs, TP=8 DP=8", cache=False)
    assert not [h for h in found.hypotheses if h.cause.startswith("oom-") and h.probability > 0.0]
