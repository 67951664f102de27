"""Exports of Nsight Systems whose tables and columns differ, and runs of Nsight Compute that counted nothing."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from stallwise.doctor.examine import diagnose
from stallwise.doctor.findings.diagnosis import State
from stallwise.errors import StallwiseError
from tests.own_subject.asked import asked, words

PLACE = ("start", "end", "deviceId", "contextId", "streamId", "correlationId")
SHAPE = ("gridX", "gridY", "gridZ", "blockX", "blockY", "blockZ")
LATER = ("registersPerThread", "staticSharedMemory", "dynamicSharedMemory")


def export(folder: Path, columns: tuple[str, ...], *, strings: bool = True) -> Path:
    """400 launches of two kernels, 90 us each with 10 us between them."""
    path = folder / "report1.sqlite"
    database = sqlite3.connect(path)
    database.execute("CREATE TABLE META_DATA_EXPORT (name TEXT, value TEXT)")
    database.execute("CREATE TABLE TARGET_INFO_SYSTEM_ENV (name TEXT)")
    if strings:
        database.execute("CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT)")
        database.executemany(
            "INSERT INTO StringIds VALUES (?, ?)", [(1, "ampere_sgemm_128x64_nn"), (2, "softmax_kernel")]
        )
    database.execute(f"CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL ({', '.join(columns)})")
    for at in range(400):
        row = dict.fromkeys((*SHAPE, *LATER), 64) | dict.fromkeys(("demangledName", "shortName"), 1 + at % 2)
        row |= {
            "start": at * 100_000,
            "end": at * 100_000 + 90_000,
            "deviceId": 0,
            "contextId": 1,
            "streamId": 7,
            "correlationId": at,
        }
        marks = ", ".join("?" * len(columns))
        database.execute(f"INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES ({marks})", [row[c] for c in columns])
    database.commit()
    database.close()
    return path


@pytest.mark.parametrize(
    "columns", [(*PLACE, "demangledName", *SHAPE, *LATER), (*PLACE, "shortName", *SHAPE), (*PLACE, "shortName")]
)
def test_columns_that_a_release_lacks_change_no_verdict(tmp_path: Path, columns: tuple[str, ...]) -> None:
    answer = diagnose(str(export(tmp_path, columns)), workers=1, cache=False)
    assert answer.ranked[0] == "tensor-cores-unused" and "400 kernels of 90.0 us" in words(answer)


def test_kernels_without_their_names_still_have_their_times(tmp_path: Path) -> None:
    answer = diagnose(str(export(tmp_path, (*PLACE, "demangledName"), strings=False)), workers=1, cache=False)
    assert answer.state is State.UNCLEAR and "the device works 90.0%" in words(answer)


def test_a_cut_database_is_said_to_be_cut(tmp_path: Path) -> None:
    path = export(tmp_path, (*PLACE, "demangledName"))
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    with pytest.raises(StallwiseError, match="cut or damaged"):
        diagnose(str(path), workers=1, cache=False)


def test_counters_without_permission_are_no_kernels_and_no_cause(tmp_path: Path) -> None:
    answer = asked(
        tmp_path,
        "ncu.txt",
        "==PROF== Connected to process 991 (/opt/conda/bin/python)\n"
        "==ERROR== ERR_NVGPUCTRPERM - The user does not have permission to access NVIDIA GPU Performance Counters on the target "
        "device 0.\n==PROF== Disconnected from process 991\n==WARNING== No kernels were profiled.\n",
    )
    said = words(answer)
    assert answer.state is State.UNCLEAR and "ERR_NVGPUCTRPERM" in said and "line 2" in said and not answer.hypotheses
    assert "no kernel was profiled" in said and "ncu --set full" in said
