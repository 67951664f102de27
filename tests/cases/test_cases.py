"""Real captured runs: each cause fires where it was planted and stays silent where it was not.

A folder `tests/cases/<cause>/<case>/` holds artifacts and `expect.toml`: `fires` (the first must be the first answer),
`silent` (no finding worth acting on), `unknown` (the rule says what it lacked), `inputs` (default: the folder itself).
"""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path

import pytest

from stallwise.doctor.examine import diagnose
from stallwise.doctor.findings.diagnosis import Diagnosis
from stallwise.doctor.rank import SURE_ENOUGH

HERE = Path(__file__).parent
CASES = sorted(path.parent for path in HERE.rglob("expect.toml"))


def expected(folder: Path) -> dict[str, list[str]]:
    return tomllib.loads((folder / "expect.toml").read_text(encoding="utf-8"))


@cache
def diagnosis_of(folder: Path) -> Diagnosis:
    given = expected(folder).get("inputs")
    places = (
        [folder / place for place in given] if given else [p for p in sorted(folder.iterdir()) if p.suffix != ".toml"]
    )
    return diagnose(*(str(place) for place in places), cache=False)


@pytest.mark.parametrize("folder", CASES, ids=lambda p: p.name)
def test_the_planted_cause_is_the_first_answer(folder: Path) -> None:
    assert diagnosis_of(folder).ranked[0] == expected(folder)["fires"][0]


@pytest.mark.parametrize("folder", CASES, ids=lambda p: p.name)
def test_causes_that_are_not_there_stay_silent(folder: Path) -> None:
    found = {f.cause for f in diagnosis_of(folder).findings if f.confidence >= SURE_ENOUGH and not f.optional}
    assert not found & set(expected(folder).get("silent", []))


@pytest.mark.parametrize("folder", CASES, ids=lambda p: p.name)
def test_what_cannot_be_known_is_said(folder: Path) -> None:
    unknown = {u.cause for u in diagnosis_of(folder).unknown}
    assert set(expected(folder).get("unknown", [])) <= unknown


@pytest.mark.parametrize("folder", CASES, ids=lambda p: p.name)
def test_a_finding_points_at_its_sources_and_says_what_to_do(folder: Path) -> None:
    for finding in diagnosis_of(folder).findings:
        if finding.confidence >= SURE_ENOUGH:
            assert any(reason.sources for reason in finding.because), finding.cause
            assert finding.fixes, finding.cause
