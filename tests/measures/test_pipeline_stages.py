"""Stages, hand-offs and experts as the traces of the ranks show them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from stallwise.doctor.gather import gather
from stallwise.doctor.measures import measure_evidence
from stallwise.evidence.catalog import distributed as q
from stallwise.evidence.catalog import workers as w
from stallwise.evidence.evidence import Evidence
from tests.readers.trace_files import document, event

STAGES, MICROBATCHES, PASS_US, HAND_US = 4, 6, 300.0, 20.0


def pipeline_rank(stage: int, pass_us: list[float], steps: int = 3) -> dict[str, Any]:
    """A forward-only pipeline by hand: each pass begins when the stage is free and its input has come."""
    ready = [0.0] * MICROBATCHES
    rows: list[dict[str, Any]] = []
    ident = 1
    step_us = sum(pass_us) + (MICROBATCHES - 1) * max(pass_us) + 2 * STAGES * HAND_US
    free: dict[int, float] = {}
    for step in range(steps):
        begin = step * step_us + 1  # the host asks for nothing before the mark of its step
        ready = [begin] * MICROBATCHES
        for at in range(STAGES):
            free[at] = begin
            for micro in range(MICROBATCHES):
                start = max(free[at], ready[micro])
                end = start + pass_us[at]
                if at == stage:
                    if at > 0:
                        asked = free[at]
                        rows += hand_off(ident, asked, start, "recv", at - 1)
                        ident += 1
                    rows.append(event("cudaLaunchKernel", "cuda_runtime", start - 0.5, 0.4, correlation=ident))
                    rows.append(event("gemm", "kernel", start, pass_us[at], pid=0, tid=7, correlation=ident))
                    ident += 1
                    if at < STAGES - 1:
                        rows += hand_off(ident, end, end + HAND_US, "send", at + 1)
                        ident += 1
                free[at] = end + (HAND_US if at < STAGES - 1 else 0.0)
                ready[micro] = end + HAND_US
        rows.append(event(f"ProfilerStep#{step + 1}", "user_annotation", begin - 1, step_us))
    info = {"rank": stage, "world_size": STAGES, "backend": "nccl"}
    return document(rows, distributedInfo=info)


def hand_off(ident: int, start: float, end: float, op: str, peer: int) -> list[dict[str, Any]]:
    side = {"Dst Rank": peer} if op == "send" else {"Src Rank": peer}
    args = {"Collective name": op, "In msg nelems": 1000, "Out msg nelems": 1000, "dtype": "BFloat16", "Group size": 2,
            "Process Group Name": "pp", **side}  # fmt: skip
    return [
        event("cudaLaunchKernel", "cuda_runtime", start - 0.3, 0.2, correlation=ident),
        event(
            "ncclDevKernel_SendRecv", "kernel", start, max(end - start, 1.0), pid=0, tid=21, correlation=ident, **args
        ),
    ]


def pipeline(tmp_path: Path, pass_us: list[float]) -> Evidence:
    for stage in range(STAGES):
        (tmp_path / f"rank-{stage}.json").write_text(json.dumps(pipeline_rank(stage, pass_us)))
    evidence = gather([str(tmp_path)], cache=False)
    measure_evidence(evidence)
    return evidence


def test_equal_stages_idle_as_the_schedule_must(tmp_path: Path) -> None:
    evidence = pipeline(tmp_path, [PASS_US] * STAGES)
    assert evidence.value(q.PIPELINE_STAGES) == STAGES
    assert evidence.get(q.STAGE_RATIO) is None
    assert evidence.value(q.PIPELINE_IDLE) == pytest.approx((STAGES - 1) / (MICROBATCHES + STAGES - 1), abs=0.12)


def test_a_slow_last_stage_is_seen(tmp_path: Path) -> None:
    evidence = pipeline(tmp_path, [PASS_US] * (STAGES - 1) + [1.5 * PASS_US])
    assert evidence.value(q.SLOWEST_STAGE) == STAGES - 1
    assert evidence.value(q.STAGE_RATIO) == pytest.approx(1.5 / 1.125, abs=0.05)
    assert evidence.value(w.STAGE_COST) == pytest.approx(MICROBATCHES * 0.5 * PASS_US * 1e-6, rel=0.4)


def test_hand_offs_are_counted_without_their_waiting(tmp_path: Path) -> None:
    evidence = pipeline(tmp_path, [PASS_US] * STAGES)
    assert evidence.value(q.P2P_COUNT) == pytest.approx(2 * MICROBATCHES, abs=MICROBATCHES)
    assert evidence.value(q.P2P_TIME) < 2.5 * MICROBATCHES * HAND_US * 1e-6


def exchanging_rank(rank: int, received: list[int]) -> dict[str, Any]:
    rows = [event("ProfilerStep#1", "user_annotation", 0, 4000)]
    for n, elements in enumerate(received):
        args = {"Collective name": "all_to_allv", "In msg nelems": 4000, "Out msg nelems": elements, "dtype": "BFloat16",
                "Group size": 4, "Process Group Name": "ep", "In split size": "[1000, 1000, 1000, 1000]"}  # fmt: skip
        rows.append(event("cudaLaunchKernel", "cuda_runtime", 100 + 500 * n, 5, correlation=n))
        rows.append(event("ncclDevKernel_SendRecv", "kernel", 110 + 500 * n, 90, pid=0, tid=30, correlation=n, **args))
    return document(rows, distributedInfo={"rank": rank, "world_size": 4, "backend": "nccl"})


@pytest.mark.parametrize(("loads", "spread"), [([4000] * 4, 1.0), ([10000, 2000, 2000, 2000], 2.5)])
def test_tokens_received_tell_the_spread_of_experts(tmp_path: Path, loads: list[int], spread: float) -> None:
    for rank, load in enumerate(loads):
        (tmp_path / f"rank-{rank}.json").write_text(json.dumps(exchanging_rank(rank, [load] * 6)))
    evidence = gather([str(tmp_path)], cache=False)
    measure_evidence(evidence)
    assert evidence.value(q.EXPERT_SPREAD) == pytest.approx(spread)
