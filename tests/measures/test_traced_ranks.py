"""Profiler traces of a pipeline's ranks as one job: who is which stage, whatever is damaged or missing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from stallwise.doctor.examine import diagnose
from stallwise.doctor.findings.diagnosis import Diagnosis
from stallwise.render.json import to_dict
from tests.readers.trace_files import document, event

REPLICAS, STAGES, MICROBATCHES, STEPS = 3, 2, 6, 6
PASS_US, HAND_US, SLOW = 400.0, 10.0, 1.7
SLOW_RANK = 4  # replica 1 of stage 1


def schedule(stage: int) -> list[tuple[str, int]]:
    """1F1B of two stages."""
    ahead = STAGES - 1 - stage
    order = [("F", m) for m in range(ahead)]
    for m in range(MICROBATCHES):
        order += [("F", m + ahead)] if m + ahead < MICROBATCHES else []
        order.append(("B", m))
    return order


def played(replica: int) -> dict[int, list[tuple[str, int, float, float]]]:
    """Passes of both stages of a replica in one step, in microseconds."""
    done: dict[tuple[int, str, int], float] = {}
    rows: dict[int, list[tuple[str, int, float, float]]] = {s: [] for s in range(STAGES)}
    left, free = {s: schedule(s) for s in range(STAGES)}, dict.fromkeys(range(STAGES), 0.0)
    while any(left.values()):
        for stage in range(STAGES):
            while left[stage]:
                kind, m = left[stage][0]
                before = (stage - 1, "F", m) if kind == "F" else (stage + 1, "B", m)
                if 0 <= before[0] < STAGES and before not in done:
                    break
                begin = max(free[stage], done.get(before, -HAND_US) + HAND_US)
                slow = SLOW if stage * REPLICAS + replica == SLOW_RANK else 1.0
                end = begin + PASS_US * slow * (1 if kind == "F" else 2)
                rows[stage].append((kind, m, begin, end))
                done[stage, kind, m] = free[stage] = end
                left[stage].pop(0)
    return rows


def rank_trace(rank: int, clock_us: float, *, named: bool) -> dict[str, Any]:
    """Kernels of the passes, hand-offs between them, and the gradient exchange, as a device's trace holds them."""
    stage, replica = divmod(rank, REPLICAS)
    other = (1 - stage) * REPLICAS + replica
    ready = [max(r[stage][-1][3] for r in map(played, range(REPLICAS)))]
    step_us = max(max(x[-1][3] for x in played(r).values()) for r in range(REPLICAS)) + 300.0
    rows: list[dict[str, Any]] = []
    ident = 1

    def launched(name: str, begin: float, length: float, stream: int, ahead: float = 0.5, **args: Any) -> None:
        """The host asks for work in the order of the program: for a send behind its pass, while that still runs."""
        nonlocal ident
        rows.append(event("cudaLaunchKernel", "cuda_runtime", clock_us + begin - ahead, 0.2, correlation=ident))
        rows.append(event(name, "kernel", clock_us + begin, length, pid=0, tid=stream, correlation=ident, **args))
        ident += 1

    for step in range(STEPS):
        at = step * step_us + 10
        for kind, m, begin, end in played(replica)[stage]:
            takes = kind == "F" if stage else kind == "B"
            arguments = {
                "In msg nelems": 1000,
                "Out msg nelems": 1000,
                "dtype": "BFloat16",
                "Process Group Name": f"pp{replica}",
            }
            if takes:
                launched(
                    "ncclDevKernel_SendRecv",
                    at + begin - 3,
                    1.0,
                    21,
                    **{"Collective name": "recv", "Src Rank": other},
                    **arguments,
                )
            if named or kind == "B":
                name = (
                    f"{'Forward' if kind == 'F' else 'Backward'} {m}"
                    if named
                    else "autograd::engine::evaluate_function: MmBackward0"
                )
                rows.append(
                    event(name, "user_annotation" if named else "cpu_op", clock_us + at + begin - 1, end - begin)
                )
            launched("gemm", at + begin, end - begin, 7)
            if not takes:
                launched(
                    "ncclDevKernel_SendRecv",
                    at + end + 1,
                    1.0,
                    22,
                    end + 1 - begin,
                    **{"Collective name": "send", "Dst Rank": other},
                    **arguments,
                )
        last = played(replica)[stage][-1][3]
        group = str([stage * REPLICAS + r for r in range(REPLICAS)])
        together = {"Collective name": "allreduce", "In msg nelems": 100000, "dtype": "BFloat16", "Group size": REPLICAS,
                    "Process Group Name": f"dp{stage}", "Process Group Ranks": group}  # fmt: skip
        launched("ncclDevKernel_AllReduce", at + last + 5, ready[0] - last + 100, 23, **together)
        rows.append(event(f"ProfilerStep#{step + 1}", "user_annotation", clock_us + step * step_us, step_us))
    info = {"rank": rank, "world_size": REPLICAS * STAGES, "backend": "nccl"}
    return document(rows, distributedInfo=info, host_name=f"n{replica}")


def job(folder: Path, *, named: bool = False) -> Path:
    folder.mkdir()
    for rank in range(REPLICAS * STAGES):
        (folder / f"rank-{rank}.json").write_text(json.dumps(rank_trace(rank, 1000.0 * rank, named=named)))
    return folder


def assert_the_slow_rank(found: Diagnosis) -> None:
    assert found.ranked[0] == "straggler-rank"
    assert f"rank {SLOW_RANK} (pipeline stage 1)" in found.findings[0].headline
    cost_s = next(f["cost_s"] for f in to_dict(found)["job"]["faults"] if f["kind"] == "worker")
    assert cost_s == pytest.approx((SLOW - 1) * 3 * PASS_US * MICROBATCHES * 1e-6, rel=0.1)


@pytest.mark.parametrize("named", [True, False])
def test_passes_with_and_without_names(tmp_path: Path, named: bool) -> None:
    """On clocks that differ by up to five milliseconds, more than a pass."""
    found = diagnose(str(job(tmp_path / "run", named=named)), cache=False)
    assert_the_slow_rank(found)
    assert abs(to_dict(found)["job"]["replay_error"]) < 0.05
    assert {row["name"] for row in to_dict(found)["job"]["by_host"]} == {"n0", "n1", "n2"}


def test_damaged_cut_and_missing_ranks_leave_the_answer(tmp_path: Path) -> None:
    folder = job(tmp_path / "run")
    (folder / "rank-0.json").write_bytes(b"\x1f\x8b broken")
    whole = (folder / "rank-2.json").read_bytes()
    (folder / "rank-2.json").write_bytes(whole[: 2 * len(whole) // 3])
    (folder / "rank-5.json").unlink()
    found = diagnose(str(folder), cache=False)
    assert_the_slow_rank(found)
    said = " ".join(n.text for n in found.notes)
    assert "no recording of rank 0, 5" in said and "were not recorded" in said


def test_one_rank_by_itself_is_no_job(tmp_path: Path) -> None:
    folder = job(tmp_path / "run")
    found = diagnose(str(folder / "rank-1.json"), cache=False)
    assert "job" not in to_dict(found)
    assert not any(n.lost for n in found.notes)
