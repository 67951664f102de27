"""A usual number proves nothing to somebody who knows of a better one."""

from __future__ import annotations

import pytest

from stallwise.doctor.examine import diagnose
from stallwise.doctor.findings.diagnosis import State


@pytest.mark.parametrize(
    "told",
    [
        "8x A100 at 48.8% MFU. A colleague's build reports 100 wps more with the same loss.",
        "64 H100, MFU 44%, the paper reports higher numbers for this model",
        "MFU is 41% on our H100 nodes, the same job is faster on another cluster",
    ],
)
def test_no_all_clear_where_another_run_is_told_to_be_better(told: str) -> None:
    assert diagnose(facts=(f"symptom={told}",), cache=False).state is State.UNCLEAR


def test_a_usual_number_alone_is_well() -> None:
    assert diagnose(facts=("symptom=64 H100, MFU 44%, is that good?",), cache=False).healthy
