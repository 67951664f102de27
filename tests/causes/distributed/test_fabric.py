# ruff: noqa: E501  (lines as the libraries print them)
"""The fabric: what leaves a node over what, what joins GPUs inside, and where a scaling series breaks."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stallwise.doctor.findings.diagnosis import State
from tests.causes.examined import calm, diagnosis_of, ranked


def log(
    hosts: tuple[str, ...] = ("a", "b"),
    per_host: int = 2,
    net: str = "IB",
    via: str = "NET/IB/0/GDRDMA",
    inside: str = "P2P/CUMEM",
    extra: str = "",
) -> str:
    world = len(hosts) * per_host
    lines = []
    for i, host in enumerate(hosts):
        for d in range(per_host):
            rank, head = i * per_host + d, f"{host}:{100 + d}:{200 + d} [{d}] NCCL INFO "
            lines.append(f"{head}Using network {net}")
            lines.append(
                f"{head}ncclCommInitRank comm 0x{i}{d} rank {rank} nranks {world} cudaDev {d} busId {d}000 commId 0x9 - Init COMPLETE"
            )
            peer = (rank + 1) % world
            way = f"[send] via {via}" if (rank + 1) % per_host == 0 and len(hosts) > 1 else f"via {inside}"
            lines.append(f"{head}Channel 00/0 : {rank}[{d}] -> {peer}[{peer % per_host}] {way}")
    return "\n".join(lines) + "\n" + extra


FAST, SLOW = "NET/IB/0/GDRDMA", "NET/Socket/0"
CASES = {
    "sockets between nodes": ("network-fallback-socket", log(net="Socket", via=SLOW)),
    "sockets seen from one node of two": ("network-fallback-socket", "\n".join(log(net="Socket", via=SLOW).splitlines()[:6])),
    "libfabric over tcp": ("network-fallback-socket", log(net="AWS Libfabric", via="NET/AWS Libfabric/0", extra="a:100:200 [0] NCCL INFO NET/OFI Selected Provider is tcp;ofi_rxm (found 1 nics)\n")),
    "a plugin that does not obey": ("network-fallback-socket", log(net="IBext", via="NET/IBext/0/GDRDMA", extra="a:1:1 [0] NCCL INFO NCCL_IB_DISABLE set by environment to 1.\n")),
    "RDMA without GPUDirect": ("gdr-disabled", log(via="NET/IB/0")),
    "RDMA without GPUDirect, said aloud": ("gdr-disabled", log(via="NET/IB/0", extra="a:1:1 [0] NCCL INFO NET/IB : GPU Direct RDMA Disabled for HCA 0 'mlx5_0'\n")),
    "tensor parallelism over two nodes": ("tp-crosses-nodes", "server_args=ServerArgs(model_path='x', tp_size=16, nnodes=2)\n" + log(per_host=8)),
    "a border in bare times": ("collective-topology-cliff", "ranks,time_ms\n64,45\n128,52\n256,61\n512,340\n"),
    "a border in aligned text": ("collective-topology-cliff", "gpus   allreduce_ms\n8   10.1\n16   10.4\n32   31.0\n64   32.5\n"),
    "a border in throughput per GPU": ("collective-topology-cliff", "nodes,gpus,tokens_per_s_per_gpu\n1,2,3000\n1,4,2950\n1,8,2900\n2,16,1900\n4,32,1850\n"),
}  # fmt: skip


@pytest.mark.parametrize("what", CASES)
def test_the_cause_is_named(what: str) -> None:
    cause, text = CASES[what]
    assert ranked(text)[0] == cause


HEALTHY = {
    "RDMA with GPUDirect": log(),
    "sockets on one node, through NET because all else is off": log(("a",), 2, "Socket", inside="NET/Socket/0"),
    "shared memory on one node": log(("a",), 4, "Socket", inside="SHM/direct/direct"),
    "a far adapter without GPUDirect while connections have it": log(extra="a:1:1 [0] NCCL INFO NET/IB : GPU Direct RDMA Disabled for GPU 1b000 / HCA 3 (distance 7 > 4)\n"),
    "no multicast on older cards": log(extra="a:1:1 [0] NCCL INFO NVLS multicast support is not available on dev 0\n"),
    "tensor parallelism inside a node": "tp_size=8, nnodes=2\n" + log(per_host=8),
    "smooth scaling": "ranks,time_ms\n64,45\n128,47\n256,51\n512,58\n",
    "a topology without NVLink by itself": "\tGPU0\tGPU1\nGPU0\t X \tSYS\nGPU1\tSYS\t X \n",
}  # fmt: skip


@pytest.mark.parametrize("what", HEALTHY)
def test_what_is_normal_is_healthy(what: str) -> None:
    assert calm(HEALTHY[what])


def test_the_boundary_its_price_and_the_algorithm_are_named() -> None:
    found = diagnosis_of("ranks,time_ms\n64,45\n128,52\n256,61\n512,340\n").findings[0]
    assert "512" in found.headline and "hierarchical" in found.fixes[0].action
    assert found.gain is not None and 0.2 < found.gain.high_s < 0.28


@given(st.floats(0.001, 10.0), st.floats(1.0, 1.3), st.floats(3.0, 30.0), st.integers(1, 4))
def test_a_planted_boundary_is_found_where_it_was_put(base: float, growth: float, jump: float, place: int) -> None:
    sizes = [8, 16, 32, 64, 128, 256]
    times = [base * (1 + (growth - 1) * i / 5) * (jump if i > place else 1.0) for i in range(6)]
    text = "ranks,time_s\n" + "\n".join(f"{n},{t:.9f}" for n, t in zip(sizes, times, strict=True))
    assert f"{sizes[place + 1]} ranks" in diagnosis_of(text).findings[0].headline


def test_nvlink_that_is_there_and_not_used() -> None:
    files = {
        "topo": "\tGPU0\tGPU1\nGPU0\t X \tNV4\nGPU1\tNV4\t X \n",
        "on.log": "world_size=2\n 10/10 [00:10<00:00,  1.00s/it]\n",
        "off.log": "world_size=2\nNCCL_P2P_DISABLE=1\n" + log(("a",), 2, inside="SHM/direct/direct", extra="a:1:1 [0] NCCL INFO NCCL_P2P_DISABLE set by environment to 1\n") + " 10/10 [00:14<00:00,  1.40s/it]\n",
        "one.log": "world_size=1\n 10/10 [00:08<00:00,  0.80s/it]\n",
    }  # fmt: skip
    assert ranked(files)[0] == "pcie-instead-of-nvlink"


def test_tables_of_nccl_tests_give_bandwidth_and_wrong_values() -> None:
    text = """# nThread 1 nGpus 2 minBytes 8 maxBytes 1024
#  Rank  0 Group  0 Pid   1 on  n1 device  0 [0000:01:00] NVIDIA GeForce RTX 3090
#  Rank  1 Group  0 Pid   1 on  n1 device  1 [0000:02:00] NVIDIA GeForce RTX 3090
#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong
     1048576        262144     float     sum      -1    120.0    8.74    8.74      0    119.0    8.81    8.81     17
"""
    found = diagnosis_of(text)
    assert found.evidence.facts["nccl.bus_bandwidth"][0].number == pytest.approx(8.74e9)
    assert found.ranked[0] == "p2p-acs-iommu"


def test_inspector_records_become_a_table() -> None:
    record = {
        "header": {"id": "0x1", "rank": 2, "n_ranks": 8, "nnodes": 1},
        "metadata": {"hostname": "h"},
        "coll_perf": {
            "coll": "AllReduce",
            "coll_sn": 7,
            "coll_msg_size_bytes": 1024,
            "coll_exec_time_us": 10,
            "coll_busbw_gbs": 1.5,
        },
    }
    found = diagnosis_of({"x.log": json.dumps(record) + "\n" + json.dumps(record, indent=1) + "\n{broken"})
    (table,) = found.evidence.table("collective.records")
    assert len(table) == 2 and table.scope.rank == 2 and table.columns["bus_bytes_per_s"][0] == 1.5e9


def perf(device: str, ranks: int, busbw: float, hosts: int = 1) -> str:
    per = ranks // hosts
    head = "".join(
        f"#  Rank  {r} Group  0 Pid   {r} on  n{r // per} device  {r % per} [0000:01:00] {device}\n"
        for r in range(ranks)
    )
    return f"# nThread 1 nGpus 1 minBytes 8 maxBytes 1073741824\n{head}#       size         count      type   redop    root     time   algbw   busbw #wrong\n  1073741824     268435456     float     sum      -1   {1879.05 * (ranks - 1) / ranks * 1000 / busbw:.1f}   {busbw / 2:.2f}   {busbw:.2f}      0\n"


def test_a_collective_test_at_the_links_rate_is_healthy_and_far_below_it_is_not() -> None:
    good, bad = (
        diagnosis_of(perf("NVIDIA H100 80GB HBM3", 8, 470.0)),
        diagnosis_of(perf("NVIDIA H100 80GB HBM3", 8, 22.0)),
    )
    assert good.state is not State.SICK and bad.ranked[0] == "pcie-instead-of-nvlink"
    expected = good.evidence.facts["nccl.expected_bandwidth"][0]
    assert expected.low is not None and expected.low < 470e9 < (expected.high or 0)


def test_a_card_without_nvlink_is_not_blamed_for_pcie_rates() -> None:
    assert calm(perf("NVIDIA GeForce RTX 4090", 4, 15.0))


def test_recorded_collectives_name_the_rank_that_comes_last() -> None:
    lines = [
        json.dumps(
            {
                "header": {"id": "0x1", "rank": r, "n_ranks": 4},
                "coll_perf": {
                    "coll": "AllReduce",
                    "coll_sn": s,
                    "coll_msg_size_bytes": 1024,
                    "coll_exec_time_us": 20 if r == 2 else 900 + r,
                },
            }
        )
        for s in range(20)
        for r in range(4)
    ]
    found = diagnosis_of("\n".join(lines))
    assert found.ranked[0] == "straggler-rank" and found.findings[0].scope.rank == 2
