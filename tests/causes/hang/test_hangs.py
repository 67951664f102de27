# ruff: noqa: E501  (lines as the libraries print them)
"""Hangs in the words of many versions: the cause is named, its echoes are not."""

from __future__ import annotations

import json
import pickle
from typing import Any

import pytest

from tests.causes.examined import calm, diagnosis_of, ranked


def watchdog(
    rank: int,
    op: str = "ALLREDUCE",
    seq: int = 40,
    numel: int = 1024,
    enqueued: int | None = None,
    completed: int | None = None,
) -> str:
    lines = f"[rank{rank}]:[E1015 10:22:41.{rank:06d} ProcessGroupNCCL.cpp:632] [Rank {rank}] Watchdog caught collective operation timeout: WorkNCCL(SeqNum={seq}, OpType={op}, NumelIn={numel}, NumelOut={numel}, Timeout(ms)=600000) ran for 600040 milliseconds before timing out.\n"
    if completed is not None:
        lines += f"[rank{rank}]:[E1015 10:22:41.{rank:06d} ProcessGroupNCCL.cpp:2268] [PG ID 0 PG GUID 0(default_pg) Rank {rank}]  failure detected by watchdog at work sequence id: {seq} PG status: last enqueued work: {enqueued if enqueued is not None else seq}, last completed work: {completed}\n"
    return lines


def nccl(host: str, text: str, rank: int = 0, level: str = "INFO", place: str = "") -> str:
    return f"{host}:{100 + rank}:{200 + rank} [{rank}] {place}NCCL {level} {text}\n"


def comms(hosts: tuple[str, ...], per_host: int = 1) -> str:
    world = len(hosts) * per_host
    return "".join(
        nccl(host, f"comm 0x5{i}{r} rank {i * per_host + r} nranks {world} cudaDev {r} busId {r}000 - Init COMPLETE", r)
        for i, host in enumerate(hosts)
        for r in range(per_host)
    )


OLD_WATCHDOG = "[E ProcessGroupNCCL.cpp:587] [Rank {r}] Watchdog caught collective operation timeout: WorkNCCL(OpType=ALLREDUCE, TensorShape=[{n}], Timeout(ms)=1800000) ran for 1806986 milliseconds before timing out.\n"
STALL = "[2021-03-01 10:00:00.1: W horovod/common/stall_inspector.cc:105] One or more tensors were submitted to be reduced, gathered or broadcasted by subset of ranks and are waiting for remainder of ranks for more than 60 seconds. Stalled ops: grad_1 [missing ranks: 3]\n"
ELASTIC = """torch.distributed.elastic.multiprocessing.errors.ChildFailedError:
train.py FAILED
Root Cause (first observed failure):
[0]:
  time      : 2025-01-01_10:00:00
  host      : node-3
  rank      : 5 (local_rank: 1)
  exitcode  : 1 (pid: 12345)
  traceback : ValueError: token id 50304 is out of range
"""

CASES: dict[str, tuple[str, Any]] = {
    "sizes differ in old words without numbers": ("collective-mismatch", {"rank0.log": OLD_WATCHDOG.format(r=0, n=1024).replace("OpType", "SeqNum=7, OpType"), "rank1.log": OLD_WATCHDOG.format(r=1, n=2048).replace("OpType", "SeqNum=7, OpType")}),
    "operations differ under one number": ("collective-mismatch", watchdog(0, "ALLREDUCE") + watchdog(1, "BROADCAST")),
    "ranks wait at different numbers in different operations": ("collective-mismatch", watchdog(0, "ALLGATHER", 17) + watchdog(1, "ALLREDUCE", 19) + watchdog(2, "ALLGATHER", 17)),
    "the debug mode says it itself": ("collective-mismatch", "[rank1]: RuntimeError: Detected mismatch between collectives on ranks. Rank 1 is running collective: CollectiveFingerPrint(SequenceNumber=6, OpType=ALLREDUCE, TensorShape=[10]), but Rank 0 is running collective: CollectiveFingerPrint(SequenceNumber=6, OpType=BROADCAST, TensorShape=[10]).\nTCPStore\n"),
    "gloo notices sizes": ("collective-mismatch", "[rank0]: RuntimeError: [enforce fail at ../third_party/gloo/gloo/transport/tcp/pair.cc:446] op.preamble.length <= op.nbytes. 8192 vs 4096\n"),
    "tracebacks end in different collectives after a timeout": ("collective-mismatch", {f"rank{r}.log": f"[rank{r}]: Traceback (most recent call last):\n[rank{r}]:   File \"/app/train.py\", line 2{r}, in train\n[rank{r}]:     dist.{op}(x)\n[rank{r}]:   File \"/x/torch/distributed/distributed_c10d.py\", line 3252, in {op}\n[rank{r}]: RuntimeError: {end}\n" for r, op, end in ((0, "all_reduce", "[gloo/transport/tcp/unbound_buffer.cc:78] Timed out waiting 6000ms for recv operation to complete"), (1, "barrier", "[gloo/transport/tcp/pair.cc:553] Connection closed by peer [127.0.0.1]:29091"))}),
    "a log of calls with different counts": ("collective-mismatch", {f"r{r}.txt": comms(("a", "b")).splitlines(keepends=True)[r] + nccl("ab"[r], f"AllReduce: opCount 3 sendbuff 0x1 recvbuff 0x2 count {100 + r} datatype 7 op 0 root 0 comm 0x5{r}0 [nranks=2] stream 0x3") for r in (0, 1)}),
    "killed from outside, torchrun": ("rank-died-first", watchdog(0, completed=39) + "[rank0]: torch.distributed.DistBackendError: NCCL error: remote process exited or there was a network error\ntraceback : Signal 9 (SIGKILL) received by PID 812\n"),
    "killed from outside, mpirun": ("rank-died-first", STALL + "mpirun noticed that process rank 3 with PID 4711 on node n03 exited on signal 9 (Killed).\n"),
    "killed by the host's memory, Slurm": ("rank-died-first", watchdog(1, completed=39) + watchdog(2, completed=39) + "slurmstepd: error: Detected 1 oom_kill event in StepId=99.0. Some of the step tasks have been OOM Killed.\nsrun: error: node-7: task 5: Out Of Memory\n"),
    "gloo peer went away": ("rank-died-first", "[rank0]: RuntimeError: [../third_party/gloo/gloo/transport/tcp/pair.cc:598] Connection closed by peer [10.0.0.2]:33044\n"),
    "the launcher names the root": ("rank-died-first", watchdog(0, completed=39) + ELASTIC),
    "an exception of one rank before the others' timeouts": ("rank-died-first", {"rank0.log": watchdog(0, completed=39), "rank1.log": "[2025-10-15 10:12:00] [rank 1] step 39\nTraceback (most recent call last):\n  File \"train.py\", line 3\nFileNotFoundError: [Errno 2] No such file or directory: '/data/shard-17'\n"}),
    "evicted pod": ("rank-died-first", {"events.txt": "LAST SEEN   TYPE      REASON   OBJECT      MESSAGE\n9m   Warning   Evicted   pod/train-3   The node was low on resource: memory.\n", "rank0.log": watchdog(0, completed=39) + "ncclRemoteError: A call failed possibly due to a network error or a remote process exiting prematurely.\n"}),
    "first collective never ends": ("transport-never-worked", "".join(watchdog(r, "BROADCAST", 1, completed=-1) for r in range(4))),
    "shared memory, newer NCCL": ("shm-too-small", comms(("a",), 2) + nccl("a", "Error: failed to extend /dev/shm/nccl-v6Hk5d to 33030532 bytes, error: No space left on device (28)", 1, "WARN", "misc/shmutils.cc:72 ")),
    "shared memory, data loader": ("shm-too-small", "RuntimeError: DataLoader worker (pid 1234) is killed by signal: Bus error. It is possible that dataloader's workers are out of shared memory. Please try to raise your shared memory limit.\n"),
    "locked memory, completion queue": ("memlock-limit", comms(("a", "b")) + nccl("a", "Call to ibv_create_cq failed with error Cannot allocate memory", 0, "WARN", "misc/ibvwrap.cc:262 ")),
    "locked memory, warning of the library": ("memlock-limit", {"run.log": "libibverbs: Warning: RLIMIT_MEMLOCK is 65536 bytes.\n    This will severely limit memory registrations.\n", "limits": "Max locked memory         65536                65536                bytes     \n"}),
    "no route to host": ("wrong-network-interface", comms(("a", "b")) + nccl("a", "NET/Socket : Using [0]docker0:172.17.0.1<0>") + nccl("a", "Call to connect returned No route to host, retrying", 0, "WARN", "misc/socket.cc:484 ")),
    "loopback between nodes": ("wrong-network-interface", comms(("a", "b")) + nccl("a", "Bootstrap : Using lo:127.0.0.1<0>") + nccl("b", "Bootstrap : Using lo:127.0.0.1<0>") + "".join(watchdog(r, seq=1, completed=-1) for r in range(2))),
    "versions differ and messages are garbled": ("nccl-version-mismatch", {"a.log": nccl("a", "NCCL version 2.27.3+cuda12.9") + nccl("a", "Message truncated : received 1024 bytes instead of 256", 0, "WARN", "bootstrap.cc:77 "), "b.log": nccl("b", "NCCL version 2.21.5+cuda12.4")}),
    "pairs hang under one switch": ("p2p-acs-iommu", "gpu 0,1: timed out after 60 s\ngpu 0,2: ok 1.2 s\ngpu 1,2: ok 1.3 s\ngpu 2,3: timed out after 60 s\ngpu 0,1 NCCL_P2P_DISABLE=1: ok 2.0 s\n"),
    "fewer batches on one rank": ("uneven-batches", {f"rank{r}.log": f"[rank {r}] epoch 3 train batch {99 - (r == 2)}/{100 - (r == 2)}\n" + watchdog(r, completed=39) for r in range(4)}),
    "bars of different length": ("uneven-batches", {f"rank{r}.log": f"Validation: 100%|###| {31 + (r == 1)}/{31 + (r == 1)} [00:10<00:00]\n" + watchdog(r, completed=39) for r in range(2)}),
    "loaders of different length": ("uneven-batches", {f"rank{r}.log": f"[rank {r}] len(train_loader) = {1250 - (r == 3)}\n" + watchdog(r, completed=39) for r in range(4)}),
    "Horovod names the missing rank": ("straggler-rank", "[1,0]<stderr>:" + STALL),
    "barrier names the missing rank": ("straggler-rank", "[rank0]: RuntimeError: Rank 5 failed to pass monitoredBarrier in 30000 ms\nProcessGroupGloo\n"),
    "one rank far slower at one task": ("straggler-rank", watchdog(3, completed=39) + "".join(f"2026-03-08 01:40:4{r} worker[rank={r}]: load_shard done after {900.0 if r == 6 else 12.0 + r / 10}s\n" for r in range(8))),
}  # fmt: skip


# Over recorded cases such messages alone stood for a mismatch more often than for the rank that they name: both are offered.
BOTH_OFFERED = (
    "an exception of one rank before the others' timeouts",
    "killed by the host's memory, Slurm",
    "Horovod names the missing rank",
    "barrier names the missing rank",
)


@pytest.mark.parametrize("what", CASES)
def test_the_cause_is_named(what: str) -> None:
    cause, files = CASES[what]
    assert cause in ranked(files)[: 3 if what in BOTH_OFFERED else 1]


def dump(
    entries: list[tuple[int, str, int, str]], status: tuple[int, int, int] = (0, 0, 0), world: int = 4
) -> dict[str, Any]:
    return {
        "version": "2.10",
        "pg_config": {"0": {"name": "0", "desc": "default_pg", "ranks": str(list(range(world)))}},
        "pg_status": {"0": {"last_enqueued_collective": status[0], "last_started_collective": status[1], "last_completed_collective": status[2]}},
        "entries": [
            {
                "frames": [{"name": "all_reduce", "filename": "/x/site-packages/torch/distributed/distributed_c10d.py", "line": 3}, {"name": "train_step", "filename": "train.py", "line": 118}],
                "record_id": i, "pg_id": 0, "process_group": ("0", "default_pg"), "collective_seq_id": seq, "p2p_seq_id": 0, "op_id": seq,
                "profiling_name": f"nccl:{op}", "input_sizes": [[size]], "output_sizes": [[size]], "input_dtypes": ["Float"], "output_dtypes": ["Float"],
                "state": state, "is_p2p": False, "time_created_ns": 10**9,
            }
            for i, (seq, op, size, state) in enumerate(entries)
        ],
    }  # fmt: skip


DONE = [(i, "all_reduce", 64, "completed") for i in range(1, 6)]


def dumps(by_rank: dict[int, dict[str, Any]], as_json: bool = False) -> dict[str, str | bytes]:
    return {
        f"nccl_trace_rank_{r}{'.json' if as_json else ''}": json.dumps(d) if as_json else pickle.dumps(d)
        for r, d in by_rank.items()
    }


@pytest.mark.parametrize("as_json", [False, True])
def test_dumps_show_sizes_that_differ_with_the_line_of_code(as_json: bool) -> None:
    files = dumps(
        {r: dump([*DONE, (6, "all_reduce", 128 if r != 2 else 100, "started")], (6, 6, 5)) for r in range(4)}, as_json
    )
    found = diagnosis_of(files)
    assert found.ranked[0] == "collective-mismatch"
    text = str(found.findings[0].because)
    assert "rank 2 in ALLREDUCE #6 of 100 elements" in text and "train.py:118 train_step" in text


def test_dumps_show_who_did_not_come() -> None:
    files = dumps(
        {r: dump([*DONE, (6, "all_reduce", 128, "started")] if r != 3 else DONE, (6, 6, 5)) for r in range(4)}
    )
    found = diagnosis_of(files)
    assert found.ranked[0] == "straggler-rank" and "rank 3" in found.findings[0].headline


def test_a_missing_dump_is_a_missing_rank() -> None:
    files = dumps({r: dump([*DONE, (6, "all_reduce", 128, "scheduled")], (6, 6, 5)) for r in (0, 1, 3)})
    found = diagnosis_of(files)
    assert found.ranked[0] == "straggler-rank" and "rank 2" in str(found.findings[0].because)


def test_dumps_without_any_completed_collective() -> None:
    files = dumps({r: dump([(1, "broadcast", 64, "started")], (1, 1, -1), 2) for r in range(2)})
    assert ranked(files)[0] == "transport-never-worked"


def test_dumps_of_a_healthy_job_are_healthy() -> None:
    assert calm(dumps({r: dump(DONE, (5, 5, 5)) for r in range(4)}))


def test_the_oldest_dumps_are_lists() -> None:
    old = [
        {"seq_id": 6, "profiling_name": "nccl:all_reduce", "input_sizes": [[n]], "state": "scheduled", "frames": []}
        for n in (64,)
    ]
    new = [{**old[0], "profiling_name": "nccl:broadcast"}]
    assert ranked({"dump_0": pickle.dumps(old), "dump_1": pickle.dumps(new)})[0] == "collective-mismatch"


def stack(rank: int, *frames: str) -> tuple[str, str]:
    return (
        f"rank{rank}_stack.txt",
        f'Process {rank}: python train.py\nPython v3.12\n\nThread {rank} (idle): "MainThread"\n'
        + "".join(f"    {f}\n" for f in frames),
    )


def test_stacks_in_different_calls() -> None:
    files = dict([stack(0, "all_reduce (torch/distributed/distributed_c10d.py:3)", "step (train.py:10)"), stack(1, "barrier (torch/distributed/distributed_c10d.py:9)", "save (train.py:77)")])  # fmt: skip
    found = diagnosis_of(files)
    assert found.ranked[0] == "collective-mismatch" and "train.py:77 save" in str(found.findings[0].because)


def test_a_stack_that_is_in_no_collective_names_the_late_rank() -> None:
    waiting = [stack(r, "all_reduce (torch/distributed/distributed_c10d.py:3)", "step (train.py:10)") for r in range(3)]
    files = dict([*waiting, stack(3, "_next_data (torch/utils/data/dataloader.py:1)", "epoch (train.py:5)")])
    found = diagnosis_of(files)
    assert found.ranked[0] == "straggler-rank" and "rank 3" in found.findings[0].headline


def test_faulthandler_stacks_are_read_too() -> None:
    text = 'Thread 0x00007f01 (most recent call first):\n  File "/x/torch/distributed/distributed_c10d.py", line 3 in {}\n  File "train.py", line {} in main\n'
    assert (
        ranked({"rank0.txt": text.format("all_gather", 10), "rank1.txt": text.format("broadcast", 20)})[0]
        == "collective-mismatch"
    )


def test_a_dump_folder_of_the_distributed_debugger_holds_a_stack_of_every_rank() -> None:
    """Threads have no names there; the last of a process is its main one."""
    other = (
        'Thread 0x00007f01 (most recent call first):\n  File "/usr/lib/python3.12/threading.py", line 324 in wait\n\n'
    )
    waits = '  File "/x/torch/distributed/distributed_c10d.py", line 3 in all_reduce\n  File "/work/train.py", line 10 in main\n'
    late = '  File "/work/data.py", line 31 in decode\n  File "/work/train.py", line 5 in main\n'
    text = "".join(
        f"=== Rank {r}: http://node{r}:25999 ===\n{other}Thread 0x00007f02 (most recent call first):\n{late if r == 2 else waits}"
        for r in range(4)
    )
    found = {f.cause: f.headline for f in diagnosis_of({"stacks_20261119_030101.txt": text}).findings}
    assert "rank 2, at /work/data.py:31 decode" in found["straggler-rank"], found


def test_ras_counts_name_the_rank_that_issued_fewer() -> None:
    ranks = [
        {
            "rank": r,
            "host": "n",
            "pid": r,
            "status": {"init_state": 0},
            "collective_counts": {"AllReduce": 100 - (r == 5)},
        }
        for r in range(8)
    ]
    found = diagnosis_of(
        {
            "ras.json": json.dumps(
                {"nccl_version": "2.28.9", "communicators": [{"hash": "0x1", "size": 8, "ranks": ranks}]}
            )
        }
    )
    assert found.ranked[0] == "straggler-rank" and "rank 5" in found.findings[0].headline


HEALTHY = {
    "one node uses sockets for bootstrap only": comms(("a",), 2) + nccl("a", "Using network Socket") + nccl("a", "Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM"),
    "address family warnings of c10d": "[W1015 10:00:00 socket.cpp:697] [c10d] The client socket cannot be initialized to connect to [node]:29500 (errno: 97 - Address family not supported by protocol).\nTCPStore\n[rank0] step 1 loss 2.0\n",
    "a client of the server that went away": "[W ProcessGroupNCCL.cpp:1] warning of no weight\nuvicorn: ConnectionResetError: [Errno 104] Connection reset by peer while sending to 10.0.0.9\nBroken pipe: client left\n" + "GET /health 200\n" * 60,
    "an exception that was handled long ago": "[rank0] UserWarning\n[rank0] ImportError: apex is not installed, using the native path\n" + "".join(f"[rank0] step {i} of world_size=2\n" for i in range(80)),
    "two builds side by side that both ran": {"a.log": nccl("a", "NCCL version 2.20.5+cuda12.4") + "step 1 loss 3\n", "b.log": nccl("b", "NCCL version 2.21.5+cuda12.4") + "step 1 loss 3\n"},
    "small locked-memory limit without RDMA trouble": "max locked memory           (kbytes, -l) 8192\nopen files (-n) 1024\n",
}  # fmt: skip


@pytest.mark.parametrize("what", HEALTHY)
def test_what_is_normal_is_healthy(what: str) -> None:
    assert calm(HEALTHY[what])
