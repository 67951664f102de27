"""A host that does its shortest things more slowly pays more for being recorded."""

from __future__ import annotations

import pytest

from stallwise.physics.costs.profiler import torch_recording


def test_costs_grow_as_the_shortest_things_do() -> None:
    usual = torch_recording({"launch": 4.92e-6, "operator": 0.40e-6, "between": 1.02e-6})
    slow = torch_recording({"launch": 2 * 4.92e-6, "operator": 2 * 0.40e-6, "between": 2 * 1.02e-6})
    assert slow.operator_s == pytest.approx(2 * usual.operator_s)
    assert slow.device_record_s == usual.device_record_s


def test_one_odd_yardstick_counts_for_its_part_only() -> None:
    odd = torch_recording({"launch": 8 * 4.92e-6, "operator": 0.40e-6, "between": 1.02e-6})
    assert odd.operator_s == pytest.approx(2 * torch_recording({}).operator_s)


def test_a_time_of_nothing_is_no_yardstick() -> None:
    assert torch_recording({"operator": 0.0, "launch": 4.92e-6}) == torch_recording({})
