"""Operations as Parquet columns: read with pyarrow, and named as missing without it."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from stallwise.doctor.examine import diagnose
from stallwise.errors import MissingExtra, StallwiseError
from stallwise.render.json import to_dict
from tests.shared_data import shared
from tests.sim.job.planted import LABELS, Fault, Plan, columns, costs

PLAN = Plan("1f1b", 4, 4, 1, 8, 6, 7, faults=(Fault("worker", 2, 1, 0, 1.8),))


def written(path: Path, plan: Plan, **more: object) -> Path:
    """The job's operations in microseconds, and nodes of four workers."""
    arrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed: pip install 'stallwise[parquet]'")
    parquet = pytest.importorskip("pyarrow.parquet")
    table = columns(plan)
    known = {
        "dp_rank": table["replica"], "stage": table["stage"], "step": table["step"], "microbatch": table["microbatch"],
        "chunk": table["chunk"], "name": np.array(LABELS)[table["label"]], "start_us": table["start_s"] * 1e6,
        "duration_us": table["duration_s"] * 1e6, "node": [f"node-{r}" for r in table["replica"].tolist()], **more,
    }  # fmt: skip
    parquet.write_table(arrow.table({k: v for k, v in known.items() if v is not None}), path)
    return path


def test_a_slow_worker_in_columns(tmp_path: Path) -> None:
    found = diagnose(str(written(tmp_path / "operations.parquet", PLAN)), cache=False)
    assert found.ranked[0] == "straggler-rank"
    assert "data-parallel rank 2, pipeline stage 1 on node-2" in found.findings[0].headline
    gain = found.findings[0].gain
    assert gain is not None and gain.high_s == pytest.approx(costs(PLAN)["worker"], rel=0.1)
    assert to_dict(found)["job"]["replicas"] == 4


def test_a_long_stage_in_columns(tmp_path: Path) -> None:
    plan = replace(PLAN, faults=(Fault("stage", stage=3, size=1.5),))
    table = columns(plan)
    ends = {"duration_us": None, "end_us": (table["start_s"] + table["duration_s"]) * 1e6}
    found = diagnose(str(written(tmp_path / "operations.parquet", plan, **ends)), cache=False)
    assert found.ranked[0] == "pipeline-stage-imbalance"


def test_columns_of_something_else_and_a_cut_file_say_so(tmp_path: Path) -> None:
    path = written(tmp_path / "other.parquet", PLAN, dp_rank=None, stage=None)
    with pytest.raises(StallwiseError, match="no columns of operations"):
        diagnose(str(path), cache=False)
    whole = written(tmp_path / "cut.parquet", PLAN).read_bytes()
    (tmp_path / "cut.parquet").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(StallwiseError):
        diagnose(str(tmp_path / "cut.parquet"), cache=False)


def test_without_pyarrow_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    path = tmp_path / "operations.parquet"
    path.write_bytes(b"PAR1" + bytes(64) + b"PAR1")
    with pytest.raises(MissingExtra) as raised:
        diagnose(str(path), cache=False)
    assert raised.value.extra == "parquet"


@pytest.mark.shared
def test_the_published_columns_agree_with_the_timeline() -> None:
    pytest.importorskip("pyarrow", reason="pyarrow is not installed: pip install 'stallwise[parquet]'")
    jobs = [
        to_dict(diagnose(str(shared("data", "straggler", name)), cache=False))["job"]
        for name in ("trace-ST.parquet", "timeline-ST.json.gz")
    ]
    assert jobs[0]["slowdown"] == pytest.approx(jobs[1]["slowdown"], rel=0.03)
    assert jobs[0]["last_stage_share"] == pytest.approx(jobs[1]["last_stage_share"], abs=0.05)
