"""Tables of what took most: they add up to the ledger, and shares, medians and roofs mean what their headings say."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stallwise.doctor.examine import diagnose
from stallwise.doctor.findings.diagnosis import Diagnosis
from stallwise.doctor.measures import top_collectives
from stallwise.doctor.measures._by_name import by_name
from stallwise.evidence.catalog import step
from stallwise.evidence.evidence import Evidence
from stallwise.evidence.fact import Source, Table
from stallwise.evidence.top import WHAT
from stallwise.render.html import to_html
from stallwise.render.json import to_dict
from stallwise.render.tables import table_rows

REPO = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def trained() -> Diagnosis:
    return diagnose(str(REPO / "tests" / "cases" / "input-starved" / "resnet_loader" / "trace.json.gz"))


def rows(found: Diagnosis, what: str) -> list[dict[str, Any]]:
    return found.rows(what)


def test_kernels_add_up_to_the_time_of_their_purposes(trained: Diagnosis) -> None:
    norm = sum(r["time_s"] for r in rows(trained, "kernels") if r["work"] == "norm")
    assert norm == pytest.approx(trained.evidence.value(step.NORM_TIME), rel=0.02)
    assert all(0 < r["share"] < 1 and r["median_s"] > 0 and r["count"] > 0 for r in rows(trained, "kernels"))
    times = [r["time_s"] for r in rows(trained, "kernels")]
    assert times == sorted(times, reverse=True)


def test_ceilings_are_known_where_shapes_are_and_nowhere_else(trained: Diagnosis) -> None:
    known = [r for r in rows(trained, "operators") if r["roof_share"] is not None]
    assert any("conv" in r["name"] for r in known)
    assert all(0 < r["roof_share"] <= 1 for r in known)
    assert all(r["roof_share"] is None for r in rows(trained, "operators") if "batch_norm" in r["name"])


def test_copies_tell_bytes_rate_and_bus(trained: Diagnosis) -> None:
    sent = next(r for r in rows(trained, "copies") if "HtoD" in r["name"])
    assert sent["size_bytes"] == pytest.approx(trained.evidence.value(step.TO_DEVICE_BYTES))
    assert sent["rate_byte_per_s"] * sent["time_s"] == pytest.approx(sent["size_bytes"])
    assert 0.5 < sent["roof_share"] <= 1.0  # pinned, over PCIe


def test_collectives_are_told_by_operation_size_and_group() -> None:
    columns = {
        "start_s": np.array([0.0, 0.1, 0.2]), "end_s": np.array([0.01, 0.11, 0.21]), "exposed_s": np.array([0.01, 0.0, 0.0]),
        "op": np.array(["all-reduce"] * 3), "size_bytes": np.array([1e9, 1e9, 2e6]), "group_size": np.array([8, 8, 64]),
    }  # fmt: skip
    evidence = Evidence()
    meta = {"window_s": [0.0, 1.0], "steps": 2, "unit": "step", "gpu": "NVIDIA H100 80GB HBM3"}
    evidence.add([Table("collectives", columns, Source("t.json"), meta=meta)])
    evidence.add(top_collectives.from_evidence(evidence))
    (table,) = evidence.table("top collectives")
    large, across = table_rows(table)
    assert large["name"] == "all-reduce of 1.00 GB, 8 ranks" and large["count"] == 1.0
    assert large["time_s"] == pytest.approx(0.01) and large["exposed_s"] == pytest.approx(0.005)
    assert large["bus_byte_per_s"] == pytest.approx(1e9 * 2 * 7 / 8 / 0.01) and 0.3 < large["links_share"] < 0.5
    assert across["links_share"] is None  # the trace does not tell the network


def test_operators_hold_the_time_of_their_kernels(trained: Diagnosis) -> None:
    device = sum(r["time_s"] for r in rows(trained, "operators"))
    work = sum(r["time_s"] for what in ("kernels", "copies") for r in rows(trained, what))
    assert device == pytest.approx(work, rel=0.06)  # each table ends at its fortieth name


def with_frames(folder: Path) -> Path:
    """Two steps of one loop: the line that reads takes 8 ms with an idle device, the line that steps launches 2 ms of work."""
    events: list[dict[str, Any]] = []
    for n in range(3):
        at = n * 11_000.0
        host = {"ph": "X", "pid": 1, "tid": 1}
        events += [
            {**host, "cat": "user_annotation", "name": f"ProfilerStep#{n}", "ts": at, "dur": 11_000.0},
            {**host, "cat": "python_function", "name": "train.py(10): main", "ts": at, "dur": 10_990.0},
            {**host, "cat": "python_function", "name": "data.py(7): read", "ts": at + 10, "dur": 8_000.0},
            {**host, "cat": "python_function", "name": "<built-in method read>", "ts": at + 20, "dur": 7_000.0},
            {**host, "cat": "python_function", "name": "train.py(20): step", "ts": at + 8_100, "dur": 500.0},
            {**host, "cat": "cpu_op", "name": "aten::mm", "ts": at + 8_110, "dur": 100.0, "args": {"External id": n + 1}},
            {**host, "cat": "cuda_runtime", "name": "cudaLaunchKernel", "ts": at + 8_120, "dur": 10.0, "args": {"correlation": n + 1}},
            {
                "ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": at + 8_200, "dur": 2_000.0,
                "args": {"correlation": n + 1, "External id": n + 1, "stream": 7, "device": 0},
            },
        ]  # fmt: skip
    path = folder / "trace.json"
    path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": events}), encoding="utf-8")
    return path


def test_lines_of_python_are_named_with_the_idle_time_they_cost(tmp_path: Path) -> None:
    found = diagnose(str(with_frames(tmp_path)))
    lines = {r["name"]: r for r in rows(found, "python_lines")}
    read = lines["data.py:7 read"]
    assert next(iter(lines)) == "data.py:7 read"  # the built-in's time is the line's own
    assert read["host_s"] == pytest.approx(8e-3, rel=0.05) and read["idle_s"] == pytest.approx(8e-3, rel=0.15)
    assert lines["train.py:20 step"]["idle_s"] < 0.3e-3
    tracks = [kind for kind, _ in found.scenes[0].table.meta["tracks"]]
    assert "python" in tracks


def test_samples_of_stacks_make_the_same_table(tmp_path: Path) -> None:
    frames = [
        {"name": "loop", "file": "a.py", "line": 3},
        {"name": "read", "file": "b.py", "line": 9},
        {"name": "main"},
    ]
    profile = {"type": "sampled", "unit": "seconds", "samples": [[2, 0], [2, 0, 1], [2, 0, 1]], "weights": [1, 1, 2]}
    told = {
        "$schema": "https://www.speedscope.app/file-format-schema.json",
        "shared": {"frames": frames},
        "profiles": [profile],
    }
    path = tmp_path / "host.speedscope.json"
    path.write_text(json.dumps(told), encoding="utf-8")
    lines = {r["name"]: r for r in rows(diagnose(str(path)), "python_lines")}
    assert lines["b.py:9 read"]["share"] == 0.75 and lines["a.py:3 loop"]["held_share"] == 1.0


def test_a_snapshot_tells_who_holds_the_memory() -> None:
    found = diagnose(str(REPO / "tests" / "fixtures" / "memory" / "oom_logits.pickle.gz"))
    held = rows(found, "allocations")
    assert sum(r["share"] for r in held) == pytest.approx(1.0, abs=0.05)
    assert {"kind", "name", "size_bytes"} <= set(held[0])


def test_report_and_json_show_the_same_rows(trained: Diagnosis) -> None:
    told, html = to_dict(trained)["tables"], to_html(trained)
    assert {k.replace("_", " ") for k in told} <= set(WHAT)
    assert told["kernels"]["per"] == "step" and told["kernels"]["rows"][0]["work"] == "norm"
    for what, table in told.items():
        body = html.split(f'id="top-{what.replace("_", "-")}"')[1].split("</table>")[0]
        assert body.count("<tr>") == len(table["rows"]) + 1
    json.dumps(told, allow_nan=False)


values = st.lists(st.tuples(st.integers(0, 5), st.floats(1e-9, 10.0)), max_size=60)


@given(values, st.integers(1, 6))
def test_sums_counts_and_medians_are_those_of_each_name(pairs: list[tuple[int, float]], most: int) -> None:
    code, seconds = np.array([p[0] for p in pairs], np.int64), np.array([p[1] for p in pairs], np.float64)
    found = by_name(code, seconds, most)
    assert len(found.code) + found.left_out == len(set(code.tolist()))
    for at, name in enumerate(found.code.tolist()):
        mine = seconds[code == name]
        assert found.total[at] == pytest.approx(mine.sum())
        assert found.count[at] == len(mine) and found.median[at] == pytest.approx(float(np.median(mine)))
