"""Stacks that were sampled without a profiler become lanes of a stretch of usual steps."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from stallwise.doctor.examine import diagnose
from stallwise.evidence.fact import Table
from stallwise.render.html import to_html
from stallwise.render.timeline import timeline_parts

STEP_S, BEGAN_S, STEPS = 0.05, 1_700_000_000.0, 120
LINES = ["train.py:30 <module>", "train.py:12 prepare", "train.py:20 save"]


def write(folder: Path, hole: bool = False) -> Path:
    """Two samples a step: the first in `prepare`, the second in `save`."""
    lines: list[dict[str, object]] = [
        {"k": "run", "v": 2, "rank": 0, "world": 1, "pid": 7, "host": "h", "t": BEGAN_S, "env": {}}
    ]
    lines += [{"k": "line", "id": i, "at": at} for i, at in enumerate(LINES)]
    lines += [{"k": "frames", "id": 0, "lines": [1, 0]}, {"k": "frames", "id": 1, "lines": [2, 0]}]
    for n in range(STEPS):
        end_s = BEGAN_S + (n + 1) * STEP_S
        lines.append({"k": "step", "n": n, "t": end_s, "d": STEP_S, "s": {}, "b": "user"})
        if not (hole and 5 <= n % 10 < 9):
            lines.append({"k": "samples", "t": end_s - STEP_S, "ms": [5, 30], "id": [0, 1], "stage": [None, None]})
    path = folder / "rank-00000.jsonl"
    path.write_text("\n".join(json.dumps(line, separators=(",", ":")) for line in lines) + "\n")
    return path


def boxes(table: Table, track: int) -> list[tuple[int, str, float]]:
    c, names = table.columns, table.meta["names"]
    mine = np.flatnonzero(c["track"] == track).tolist()
    return [(int(c["depth"][i]), names[c["name"][i]], float(c["end_s"][i] - c["start_s"][i])) for i in mine]


def test_frames_lie_under_their_callers_beside_the_steps(tmp_path: Path) -> None:
    found = diagnose(str(write(tmp_path)))
    (table,) = found.evidence.table("timeline")
    steps, frames = boxes(table, 1), boxes(table, 2)
    assert table.meta["which"] == "sampled" and len(steps) == 60  # as many as a stretch may hold
    assert all(abs(took_s - STEP_S) < 1e-6 for _, _, took_s in steps)
    caller = [box for box in frames if box[0] == 0]
    assert [box[1] for box in caller] == [LINES[0]] and caller[0][2] > 0.95 * 60 * STEP_S
    inner = {name: sum(took for _, line, took in frames if line == name) for name in LINES[1:]}
    assert np.allclose([inner[LINES[1]], inner[LINES[2]]], [60 * 0.025, 60 * 0.025], rtol=0.05)


def test_the_page_shows_the_stretch_and_what_proves_the_finding(tmp_path: Path) -> None:
    found = diagnose(str(write(tmp_path)))
    parts = timeline_parts(found.scenes, found.findings)
    assert parts is not None and "steps 0-59" in parts["label"]
    assert found.findings and 0 in found.scenes[0].proves  # the line that the finding names
    assert "training thread, sampled" in to_html(found)


def test_where_nothing_was_looked_at_no_frame_is_claimed(tmp_path: Path) -> None:
    (table,) = diagnose(str(write(tmp_path, hole=True))).evidence.table("timeline")
    known_s = sum(took for depth, _, took in boxes(table, 2) if depth == 0)
    assert 0.6 <= known_s / table.meta["length_s"] <= 0.72  # four steps of ten, less what the sample before stands for


def test_a_record_without_steps_has_no_stretch(tmp_path: Path) -> None:
    path = write(tmp_path)
    kept = [line for line in path.read_text().splitlines() if '"k":"step"' not in line]
    path.write_text("\n".join(kept) + "\n")
    assert not diagnose(str(path)).evidence.table("timeline")


def test_a_stretch_has_all_that_a_traced_step_has(tmp_path: Path) -> None:
    trace = Path(__file__).parents[2] / "examples" / "traces" / "loader_slow" / "trace.json.gz"
    (traced,) = diagnose(str(trace)).evidence.table("timeline")
    (sampled,) = diagnose(str(write(tmp_path))).evidence.table("timeline")
    assert set(traced.meta) == set(sampled.meta) and sampled.meta["works"] == traced.meta["works"]
    assert {c for c in traced.columns if ":" not in c} == set(sampled.columns)


def test_a_trace_of_the_same_job_shows_its_steps_alone(tmp_path: Path) -> None:
    trace = Path(__file__).parents[2] / "examples" / "traces" / "loader_slow" / "trace.json.gz"
    found = diagnose([str(write(tmp_path)), str(trace)]).evidence.table("timeline")
    assert found and all(table.meta["which"] != "sampled" for table in found)
