"""NCCL logs, nccl-tests, perftest and flight recorders: transports and rates against the line, what is open, what one node rules out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from stallwise.doctor.findings.diagnosis import State
from tests.own_subject.asked import asked, words


def benchmark_of(rate: float, prefix: str = "") -> str:
    ranks = "".join(
        f"#  Rank  {r} Group  0 Pid  19146 on n1 device  {r} [0x27] NVIDIA A100-SXM4-80GB\n" for r in range(8)
    )
    rows = "".join(
        f"{prefix} {size} {size // 4} float sum -1 {size * 1.75 / rate / 1e3:.1f} {rate / 1.75:.2f} {rate:.2f} 0\n"
        for size in (8388608, 134217728, 1073741824)
    )
    return f"# nThread 1 nGpus 8 minBytes 8 maxBytes 1073741824\n{ranks}#  size count type redop root time algbw busbw #wrong\n{rows}# Avg bus bandwidth    : {rate / 2}\n"


@pytest.mark.parametrize("prefix", ["", "[STAT]:", "[1,0]<stdout>:"])
def test_a_benchmark_near_its_links_is_in_line_whatever_stands_before_its_rows(tmp_path: Path, prefix: str) -> None:
    answer = asked(tmp_path, "all_reduce.txt", benchmark_of(231.5, prefix))
    said = words(answer)
    assert answer.state is State.HEALTHY and "231.5 GB/s" in said and "8 ranks" in said and "A100" in said


def test_a_benchmark_far_below_is_not(tmp_path: Path) -> None:
    assert asked(tmp_path, "all_reduce.txt", benchmark_of(14.0)).state is not State.HEALTHY


PERF = """                    RDMA_Write BW Test
 Dual-port       : OFF          Device         : mlx5_3
 #bytes     #iterations    BW peak[{unit}]    BW average[{unit}]   MsgRate[Mpps]
 65536      20000            {peak}             {rate}             0.753231
"""


def test_rdma_near_a_port_is_in_line_and_far_from_any_is_not(tmp_path: Path) -> None:
    good = asked(tmp_path, "ib.txt", PERF.format(unit="Gb/sec", peak=196.9, rate=196.5))
    assert good.state is State.HEALTHY and "196.5 Gb/s" in words(good) and "200 Gb/s port" in words(good)
    in_bytes = asked(tmp_path, "ib2.txt", PERF.format(unit="MB/sec", peak=11700.0, rate=11650.0))
    assert in_bytes.state is State.HEALTHY and "100 Gb/s port" in words(in_bytes)
    assert asked(tmp_path, "ib3.txt", PERF.format(unit="Gb/sec", peak=131.0, rate=130.0)).state is not State.HEALTHY


def dump(states: list[str]) -> str:
    entries: list[dict[str, Any]] = [
        {"frames": [], "record_id": at, "pg_id": 0, "process_group": ["0", "default_pg"], "collective_seq_id": at + 1, "op_id": at,
         "profiling_name": "nccl:all_reduce", "time_created_ns": 10**18 + at * 10**7, "duration_ms": 8.2, "input_sizes": [[1024]],
         "output_sizes": [[1024]], "input_dtypes": ["BFloat16"], "output_dtypes": ["BFloat16"], "state": state, "is_p2p": False}
        for at, state in enumerate(states)
    ]  # fmt: skip
    done = sum(s == "completed" for s in states)
    status = {
        "0": {
            "last_enqueued_collective": len(states),
            "last_started_collective": len(states),
            "last_completed_collective": done,
        }
    }
    config = {"0": {"name": "0", "desc": "default_pg", "ranks": "[0, 1]"}}
    return json.dumps({"version": "2.9", "pg_config": config, "pg_status": status, "entries": entries})


def test_a_recording_in_which_all_completed_is_in_line(tmp_path: Path) -> None:
    answer = asked(tmp_path, "nccl_trace_rank_0", dump(["completed"] * 40))
    said = words(answer)
    assert answer.state is State.HEALTHY and "40 collectives (40 all_reduce), all completed, 8.2 ms each" in said


def test_one_that_is_open_is_not(tmp_path: Path) -> None:
    assert asked(tmp_path, "nccl_trace_rank_0", dump(["completed"] * 39 + ["started"])).state is not State.HEALTHY


def test_an_empty_recording_is_said_as_such(tmp_path: Path) -> None:
    answer = asked(
        tmp_path, "nccl_trace_rank_0", dump(["completed"]).replace('"entries": [{', '"entries": [], "old": [{')
    )
    assert answer.state is State.UNCLEAR and "empty" in words(answer)


def nccl(via: str, ranks: int = 2) -> str:
    lines = ["n1:10:10 [0] NCCL INFO NCCL version 2.21.5+cuda12.4", "n1:10:10 [0] NCCL INFO NET/IB : No device found.",
             "n1:10:10 [0] NCCL INFO Using network Socket"]  # fmt: skip
    for rank in range(ranks):
        lines += [
            f"n1:{10 + rank}:{20 + rank} [{rank}] NCCL INFO Channel {c:02d}/0 : {rank}[{rank}] -> {(rank + 1) % ranks}[{(rank + 1) % ranks}] via {via}"
            for c in range(4)
        ]
        lines.append(f"n1:{10 + rank}:{20 + rank} [{rank}] NCCL INFO comm 0x9 rank {rank} nranks {ranks} cudaDev {rank} nvmlDev {rank} busId {rank}000 commId 0x24 - Init COMPLETE")  # fmt: skip
    return "\n".join(lines) + "\n"


def test_a_log_of_peers_is_in_line_with_its_pairs_and_its_limit(tmp_path: Path) -> None:
    answer = asked(tmp_path, "nccl.log", nccl("P2P/CUMEM/read", 4))
    said = words(answer)
    assert answer.state is State.HEALTHY and "4 ranks met on 1 node" in said and "2.21.5" in said
    assert "4 pairs via P2P/CUMEM/read (16 channels)" in said and "how fast they exchange is not in this file" in said


def test_shared_memory_on_one_node_is_never_a_network(tmp_path: Path) -> None:
    answer = asked(tmp_path, "nccl.log", nccl("SHM/direct/direct"))
    assert answer.ranked[0] == "pcie-instead-of-nvlink"
    assert not {"network-fallback-socket", "gdr-disabled", "network-congestion", "tp-crosses-nodes"} & set(
        answer.ranked
    )


def one_node_log(via: str = "P2P/CUMEM/read") -> str:
    who = "node1:100:120 [{r}] NCCL INFO "
    lines = [who.format(r=0) + "NCCL version 2.21.5+cuda12.4", who.format(r=0) + "NET/Socket : Using [0]eth0:10.0.0.1<0>",
             who.format(r=0) + "Using network Socket"]  # fmt: skip
    lines += [
        who.format(r=r) + f"comm 0x{r + 1} rank {r} nRanks 4 nNodes 1 localRanks 4 localRank {r} MNNVL 0"
        for r in range(4)
    ]
    lines += [who.format(r=r) + f"Channel 00/0 : {r}[{r}] -> {(r + 1) % 4}[{(r + 1) % 4}] via {via}" for r in range(4)]
    lines += [
        who.format(r=r) + f"comm 0x{r + 1} rank {r} nranks 4 cudaDev {r} busId {r}000 commId 0x9 - Init COMPLETE"
        for r in range(4)
    ]
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("via", ["P2P/CUMEM/read", "SHM/direct/direct"])
def test_nothing_between_nodes_is_blamed_on_one_node(tmp_path: Path, via: str) -> None:
    answer = asked(tmp_path, "nccl.log", one_node_log(via))
    between = {"network-fallback-socket", "network-congestion", "gdr-disabled", "tp-crosses-nodes"}
    assert not between & set(answer.ranked) and not between & {
        h.cause for h in answer.hypotheses if h.probability > 0.01
    }
    assert "4 ranks met on 1 node" in words(answer) and f"4 pairs via {via}" in words(answer)


def test_a_log_that_ends_before_the_communicator_is_complete_is_not_in_line(tmp_path: Path) -> None:
    assert asked(tmp_path, "whole.log", one_node_log()).state is State.HEALTHY
    cut = "".join(line for line in one_node_log().splitlines(keepends=True) if "COMPLETE" not in line)
    answer = asked(tmp_path, "cut.log", cut)
    assert answer.state is not State.HEALTHY and "before NCCL says that its communicator is complete" in words(answer)
