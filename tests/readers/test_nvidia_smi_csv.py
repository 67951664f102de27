"""nvidia-smi's CSV in all its dialects."""
# ruff: noqa: E501  (lines as nvidia-smi prints them)

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stallwise.doctor.measures.gpu_health import from_evidence
from stallwise.doctor.reading import read_artifact
from stallwise.evidence.artifact import Artifact
from stallwise.evidence.catalog import hardware as hw
from stallwise.evidence.evidence import Evidence
from stallwise.evidence.fact import Fact, Note, Table
from stallwise.readers import nvidia_smi_csv as reader

WITH_UNITS = """timestamp, index, name, utilization.gpu [%], memory.used [MiB], power.draw [W], power.limit [W], clocks.current.sm [MHz], clocks_event_reasons.active
2026/11/15 01:04:17.456, 0, NVIDIA H200, 100 %, 2048 MiB, 690.50 W, 700.00 W, 1605 MHz, 0x0000000000000004
2026/11/15 01:04:17.456, 1, NVIDIA H200, 0 %, 0 MiB, 75.10 W, 700.00 W, 345 MHz, 0x0000000000000001
2026/11/15 01:04:17.656, 0, NVIDIA H200, 98 %, 4096 MiB, 699.50 W, 700.00 W, 1590 MHz, 0x0000000000000004
"""
NO_UNITS = """index, utilization.gpu [%], memory.used [MiB], clocks.sm [MHz], clocks_throttle_reasons.sw_power_cap, clocks_throttle_reasons.hw_thermal_slowdown
0, 100, 2048, 1605, Active, Not Active
"""
NO_HEADER = "2026/11/15 01:04:17.456, 3, NVIDIA H200, 99 %, 12 %, 2048 MiB, 143771 MiB, 690.50 W, 700.00 W, 1605 MHz, 0x0000000000000020\n"


def tables(text: str) -> list[Table]:
    artifact = Artifact("smi.csv", content=text.encode())
    assert reader.recognises("x", artifact.head)
    return [i for i in reader.read(artifact) if isinstance(i, Table)]


def facts(text: str) -> Evidence:
    evidence = Evidence()
    evidence.add(reader.read(Artifact("smi.csv", content=text.encode())))
    evidence.add(from_evidence(evidence))
    return evidence


def test_units_become_si_and_gpus_are_kept_apart() -> None:
    first, second = tables(WITH_UNITS)
    assert first.scope.gpu == 0 and second.scope.gpu == 1
    assert first.columns["memory_used_bytes"].tolist() == [2048 * 2**20, 4096 * 2**20]
    assert first.columns["clock_sm_hz"].tolist() == [1605e6, 1590e6]
    assert first.columns["time_s"][1] - first.columns["time_s"][0] == pytest.approx(0.2)
    assert second.columns["reasons"].tolist() == [1.0]


def test_values_without_units_take_them_from_the_header_and_old_reason_names_set_bits() -> None:
    (table,) = tables(NO_UNITS)
    assert table.columns["utilisation_share"].tolist() == [1.0]
    assert table.columns["memory_used_bytes"].tolist() == [2048 * 2**20]
    assert table.columns["reasons"].tolist() == [4.0]


def test_rows_without_header_are_told_apart_by_units_and_a_note_says_so() -> None:
    items = list(reader.read(Artifact("smi.csv", content=NO_HEADER.encode())))
    (table,) = [i for i in items if isinstance(i, Table)]
    assert table.scope.gpu == 3 and table.meta["name"] == "NVIDIA H200"
    assert table.columns["power_limit_w"].tolist() == [700.0]
    assert table.columns["memory_total_bytes"].tolist() == [143771 * 2**20]
    assert any(isinstance(i, Note) for i in items)


def test_values_that_are_not_supported_are_unknown_not_zero() -> None:
    (table,) = tables("index, temperature.gpu, temperature.memory, power.draw [W]\n0, 65, [N/A], [Not Supported]\n")
    assert math.isnan(table.columns["memory_temperature_c"][0]) and math.isnan(table.columns["power_w"][0])


@pytest.mark.parametrize(
    "line",
    ["Unable to determine the device handle for GPU0000:06:00.0: GPU is lost.", "|ERR!   ERR!  ERR!  ERR!/ ERR! |"],
)
def test_a_lost_gpu_is_a_fact(line: str) -> None:
    _, items = read_artifact(Artifact("s", content=f"index, temperature.gpu\n0, 65\n{line}\n".encode()))
    assert [i.quantity for i in items if isinstance(i, Fact)] == [hw.GPU_LOST]


def test_clocks_and_power_are_taken_under_load_only() -> None:
    evidence = facts(WITH_UNITS)
    assert evidence.value(hw.GPU_CLOCK, gpu=0) == pytest.approx(1597.5e6)
    assert evidence.get(hw.GPU_CLOCK, gpu=1) is None
    assert evidence.value(hw.GPU_CLOCK_IDLE, gpu=1) == pytest.approx(345e6)
    assert evidence.value(hw.GPU_POWER_CAP_SHARE, gpu=0) == 1.0


def test_a_card_slower_than_its_neighbours_is_measured() -> None:
    rows = [f"{i}, NVIDIA H100, 99 %, {clock} MHz" for i, clock in enumerate((1980, 1980, 1200, 1965))]
    evidence = facts("index, name, utilization.gpu [%], clocks.sm [MHz]\n" + "\n".join(rows))
    behind = {f.scope.gpu: f.number for f in evidence.all(hw.GPU_CLOCK_BEHIND)}
    assert behind[2] == pytest.approx(1 - 1200 / 1980) and max(v for k, v in behind.items() if k != 2) < 0.01


@given(st.lists(st.floats(0, 100), min_size=1, max_size=20))
def test_mean_utilisation_is_the_mean_of_the_rows(values: list[float]) -> None:
    text = "index, utilization.gpu [%]\n" + "\n".join(f"0, {v:.3f} %" for v in values)
    expected = np.mean([float(f"{v:.3f}") for v in values]) / 100
    assert facts(text).value(hw.GPU_UTILISATION) == pytest.approx(expected, abs=1e-9)


@given(st.binary(max_size=300))
def test_any_bytes_are_read_without_a_crash(data: bytes) -> None:
    text = b"index, temperature.gpu, power.draw [W]\n" + data
    list(reader.read(Artifact("x", content=text)))
