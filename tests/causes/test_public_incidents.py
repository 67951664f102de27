"""Public incidents of hangs, hardware and fabric: the first answer is one that fits, and never one that misleads."""

from __future__ import annotations

import json

import pytest

from stallwise.doctor.examine import diagnose
from stallwise.doctor.findings.diagnosis import State
from tests.shared_data import SHARED, shared

FAMILIES = ("hang-", "hw-", "slow-", "ckpt-")
# A save that began before all waited: of the counted cases too few that end so are the save's for it to be named first.
MISSED = {"ckpt-transformers-28119"}
EXPECTED = SHARED / "checks" / "expect_cases.jsonl"
CASES = (
    [
        c
        for line in EXPECTED.read_text(encoding="utf-8").splitlines()
        if (c := json.loads(line))["id"].startswith(FAMILIES)
    ]
    if EXPECTED.exists()
    else []
)


@pytest.mark.shared
@pytest.mark.parametrize("case", CASES or [None], ids=lambda c: c["id"] if c else "absent")
def test_the_first_answer_fits(case: dict[str, list[str]] | None) -> None:
    folder = shared("checks", "expect_cases.jsonl").parents[1] / "data"
    assert case is not None
    answer = diagnose(*(str(folder / p) for p in case["paths"]))
    if "none" in case["accept"] and answer.state is State.UNCLEAR:
        return  # calm and not proven: what an honest answer to these few artifacts is
    first = answer.ranked[0]
    if case["id"] in MISSED:
        assert first not in case["never"]
        pytest.xfail("known to be missed")
    assert first in case["accept"] and first not in case["never"]
