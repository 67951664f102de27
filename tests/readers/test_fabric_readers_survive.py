# ruff: noqa: E501
"""Damaged logs, dumps and reports: readers give what they can, or say why not, and never crash."""

from __future__ import annotations

import pickle

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stallwise.doctor.messages import log_metrics_of
from stallwise.errors import StallwiseError
from stallwise.evidence.artifact import Artifact
from stallwise.readers import (
    dcgm_text,
    named_columns,
    nvidia_smi_csv,
    nvidia_smi_report,
    python_stacks,
    rank_progress,
    run_outcomes,
)
from stallwise.readers.native import flight_recorder, nccl_inspector, nccl_ras, nvidia_smi_topo

READERS = (
    dcgm_text, flight_recorder, nccl_inspector, nccl_ras, nvidia_smi_csv, nvidia_smi_report,
    nvidia_smi_topo, python_stacks, rank_progress, run_outcomes, named_columns,
)  # fmt: skip
SEEDS = [
    b"[rank0]:[E1218 20:27:21.4 ProcessGroupNCCL.cpp:629] [Rank 0] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=1, OpType=BROADCAST, NumelIn=13, NumelOut=13, Timeout(ms)=600000) ran for 600081 milliseconds before timing out.\n",
    b"a:1:2 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] [send] via NET/IB/0/GDRDMA\na:1:2 [0] misc/x.cc:3 NCCL WARN Call to connect failed\nNCCL version 2.20.5\n",
    b"[ 911.4] NVRM: Xid (PCI:0000:01:00): 79, pid=3390, name=x, GPU has fallen off the bus.\n",
    b"index, utilization.gpu [%], clocks.sm [MHz]\n0, 99 %, 1980 MHz\n",
    b"ranks,time_ms\n64,45\n128,52\n256,61\n512,340\n",
    b'GPU 0: NVIDIA B200 (UUID: GPU-0)\n\t Link 0: 53.125 GB/s\n\t Link 1: <inactive>\n',
    b'DCGM_FI_DEV_SM_CLOCK{gpu="0",Hostname="n"} 1980\n',
    b'{"communicators":[{"hash":"1","size":2,"ranks":[{"rank":0,"collective_counts":{"a":1}}]}]}',
    b'{"header":{"rank":1},"coll_perf":{"coll":"x","coll_sn":1,"coll_msg_size_bytes":1,"coll_exec_time_us":1}}',
    b"#       size         count      type   redop    root     time   algbw   busbw #wrong\n 8 2 float sum -1 12.0 0.0 0.0 0\n",
    b'Thread 1 (idle): "MainThread"\n    barrier (torch/distributed/distributed_c10d.py:3)\n    f (t.py:4)\n',
    b"\tGPU0\tGPU1\nGPU0\t X \tNV4\nGPU1\tNV4\t X \n",
    pickle.dumps({"entries": [{"collective_seq_id": 1, "profiling_name": "nccl:x", "state": "started", "input_sizes": [[2]]}]}),
]  # fmt: skip


def every_reader(data: bytes) -> None:
    for reader in READERS:
        try:
            if reader.recognises("some_rank_3.log", Artifact("f", content=data).head):
                list(reader.read(Artifact("f", content=data)))
        except StallwiseError as error:
            assert error.problem
    try:
        log_metrics_of(Artifact("f", content=data))
    except StallwiseError as error:
        assert error.problem


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(SEEDS), st.data())
def test_mutated_inputs_raise_only_our_errors(seed: bytes, draw: st.DataObject) -> None:
    data = bytearray(seed)
    for _ in range(draw.draw(st.integers(1, 4))):
        place = draw.draw(st.integers(0, len(data) - 1))
        data[place : place + draw.draw(st.integers(0, 3))] = draw.draw(st.binary(max_size=4))
    every_reader(bytes(data))


@settings(max_examples=40, deadline=None)
@given(st.lists(st.sampled_from(SEEDS), min_size=2, max_size=4))
def test_logs_pasted_together_raise_only_our_errors(parts: list[bytes]) -> None:
    every_reader(b"\n".join(parts))


@pytest.mark.parametrize("value", [[], {}, {"entries": 3}, {"entries": [1, None, {}]}, {"entries": [{"profiling_name": None}]}, {"profiling_name": 1, "entries": {"a": 1}}])  # fmt: skip
def test_dumps_of_other_shapes_are_refused_or_empty(value: object) -> None:
    try:
        list(flight_recorder.read(Artifact("dump_0", content=pickle.dumps(value))))
    except StallwiseError as error:
        assert error.problem


def test_a_dump_that_would_run_code_is_refused() -> None:
    class Evil:
        def __reduce__(self) -> tuple[object, tuple[str]]:
            return (print, ("ran",))

    data = pickle.dumps({"entries": [{"profiling_name": Evil(), "collective_seq_id": 1}]})
    with pytest.raises(StallwiseError, match="would run code"):
        list(flight_recorder.read(Artifact("nccl_trace_rank_0", content=data)))


@pytest.mark.parametrize("line", [b" " * 20_000, b"a" * 20_000, b"a:1:" * 5_000, b"1," * 10_000, b"." * 20_000])
def test_endless_lines_are_passed_over(line: bytes) -> None:
    """Patterns that backtrack over such a line would not come back within the test's patience."""
    head = b"[rank0] Error\na:1:1 [0] NCCL INFO Using network IB\nworld_size=2 1.0s/it ProcessGroupNCCL NVRM: \n# nThread 1 nGpus 2\n"
    every_reader(head + line + b"\n" + line)
