"""Measures that are not loaded where no timeline was read have nothing to say of evidence."""

from __future__ import annotations

import pytest

from stallwise.measures import OF_TIMELINES, all_measures

SAID = {module.__name__.rpartition(".")[2]: module for module in all_measures()}


@pytest.mark.parametrize("name", sorted(OF_TIMELINES))
def test_a_measure_of_timelines_alone(name: str) -> None:
    assert hasattr(SAID[name], "from_timeline") and not hasattr(SAID[name], "from_evidence")
