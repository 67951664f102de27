"""Sixty numbers and more that commands print agree with an independent script; parts that are told sum to their whole."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.questions.recomputed import FORMULAS, SCENARIOS

from stallwise.doctor.gather import gather
from stallwise.doctor.measures import expectations, expected_memory
from stallwise.evidence.evidence import Evidence
from stallwise.surfaces.cli.plan import command

EXAMPLES = Path(__file__).parents[2] / "examples" / "scenarios"
SAME = 1e-6
NEAR = 2e-3  # of a whole model's parameters: norms and biases are counted one way or the other


def test_there_are_sixty() -> None:
    assert sum(len(results) for _, results in FORMULAS) + sum(len(facts) for _, facts in SCENARIOS) >= 60


@pytest.mark.parametrize(("typed", "by_hand"), FORMULAS, ids=lambda x: " ".join(x[:2]) if isinstance(x, list) else "")
def test_formula(typed: list[str], by_hand: dict[str, float]) -> None:
    answer = CliRunner().invoke(command, ["formula", *typed, "--json"])
    printed = json.loads(answer.output)["results"]
    for name, number in by_hand.items():
        assert printed[name] == pytest.approx(number, rel=SAME), name


def expected_of(scenario: str) -> Evidence:
    evidence = gather([str(EXAMPLES / scenario / "case.toml")], cache=False, workers=1)
    for measure in (expectations, expected_memory):
        evidence.add(list(measure.from_evidence(evidence)))
    return evidence


@pytest.mark.parametrize(("scenario", "by_hand"), SCENARIOS, ids=lambda x: x if isinstance(x, str) else "")
def test_scenario(scenario: str, by_hand: dict[tuple[str, str], float]) -> None:
    evidence = expected_of(scenario)
    for (name, where), number in by_hand.items():
        told = [f.number for f in evidence.facts[name] if (f.scope.layer or f.scope.run or "") == where]
        assert told[:1] == [pytest.approx(number, rel=NEAR)], (name, where)


@pytest.mark.parametrize("run", ["before", None])
def test_the_parts_of_the_fullest_gpu_sum_to_it(run: str | None) -> None:
    evidence = expected_of("05_oom_smaller_tp")
    parts = [f.number for f in evidence.facts["expected.device_part"] if f.scope.run == run]
    peak = next(f.number for f in evidence.facts["expected.device_peak"] if f.scope.run == run)
    assert sum(parts) == pytest.approx(peak, rel=SAME)
