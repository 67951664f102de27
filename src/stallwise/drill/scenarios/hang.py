# ruff: noqa: E501
"""Jobs that hang or die together, told by watchdogs, NCCL and launchers."""

from __future__ import annotations

import json

from stallwise.drill.artifacts.background import topology
from stallwise.drill.artifacts.fabric import hosts_of, init_log, nccl, watchdog
from stallwise.drill.artifacts.rng import Rng
from stallwise.drill.incident import EXACT, Decisive, Exhibit, Plot, exhibit
from stallwise.drill.scenarios._planted import planted
from stallwise.units import Unit


def _setup(rng: Rng, ranks: int, when: str) -> str:
    return f"A job on {ranks} GPUs {when}. `nvidia-smi` shows every GPU at 100% and little power, then all ranks report a timeout after ten minutes. Where do you start?"


def _by_rank(texts: dict[int, str]) -> tuple[Exhibit, ...]:
    return tuple(exhibit("rank-logs", f"rank{r}.log", t) for r, t in texts.items())


@planted("collective-mismatch")
def different_sizes(rng: Rng) -> Plot:
    ranks, seq, size = rng.pick(4, 8), rng.whole(20, 900), rng.whole(10, 900) * 1024
    odd = rng.whole(0, ranks - 1)
    logs = {r: watchdog(r, "ALLREDUCE", seq, size // 2 if r == odd else size, seq - 1) for r in range(ranks)}
    return Plot(
        _setup(rng, ranks, f"stops at step {seq} every time"),
        _by_rank(logs),
        number=Decisive("Which rank asks for another size than the rest?", odd, within=EXACT),
    )


@planted("collective-mismatch")
def different_operations(rng: Rng) -> Plot:
    ranks, seq = rng.pick(4, 8), rng.whole(20, 900)
    odd, size = rng.whole(1, ranks - 1), rng.whole(10, 900) * 1024
    other = rng.pick("BROADCAST", "ALLGATHER", "REDUCE_SCATTER")
    logs = {r: watchdog(r, other if r == odd else "ALLREDUCE", seq, size) for r in range(ranks)}
    return Plot(
        _setup(rng, ranks, "stops now and then, after a branch was added that only some ranks take"),
        _by_rank(logs),
        number=Decisive("Which rank is in another operation than the rest?", odd, within=EXACT),
    )


@planted("rank-died-first")
def one_exception(rng: Rng) -> Plot:
    ranks, seq = rng.pick(4, 8), rng.whole(20, 400)
    dead, shard = rng.whole(0, ranks - 1), rng.whole(0, 900)
    error = rng.pick(
        f"FileNotFoundError: [Errno 2] No such file or directory: '/data/shard-{shard}'",
        f"ValueError: token id {50000 + shard} is out of range",
        "KeyError: 'input_ids'",
    )
    logs = {r: watchdog(r, seq=seq, completed=seq - 1) for r in range(ranks)}
    logs[dead] = (
        f'[2025-10-15 10:12:00] [rank {dead}] step {seq - 1}\nTraceback (most recent call last):\n  File "train.py", line 3\n{error}\n'
    )
    return Plot(
        _setup(rng, ranks, f"stopped after {rng.whole(1, 30)} hours"),
        _by_rank(logs),
        number=Decisive("Which rank failed first?", dead, within=EXACT),
    )


@planted("rank-died-first")
def killed_from_outside(rng: Rng) -> Plot:
    seq = rng.whole(20, 400)
    end = "slurmstepd: error: Detected 1 oom_kill event in StepId=99.0. Some of the step tasks have been OOM Killed.\nsrun: error: node-7: task 5: Out Of Memory\n"
    text = "".join(watchdog(r, seq=seq, completed=seq - 1) for r in (1, 2)) + end
    return Plot(
        _setup(rng, 8, f"stopped after {rng.whole(1, 30)} hours"),
        (exhibit("rank-logs", "job.log", text),),
        number=Decisive("Which task ran out of memory?", 5, within=EXACT),
    )


@planted("uneven-batches")
def one_batch_fewer(rng: Rng) -> Plot:
    ranks, batches, seq = rng.pick(4, 8), rng.whole(80, 3000), rng.whole(100, 900)
    short = rng.whole(0, ranks - 1)
    logs = {
        r: f"[rank {r}] epoch 3 train batch {batches - 1 - (r == short)}/{batches - (r == short)}\n"
        + watchdog(r, seq=seq, completed=seq - 1)
        for r in range(ranks)
    }
    return Plot(
        _setup(rng, ranks, "trains a whole epoch and hangs at its end, every time"),
        _by_rank(logs),
        number=Decisive("Which rank is the odd one out?", short, within=EXACT),
    )


@planted("transport-never-worked")
def first_collective(rng: Rng) -> Plot:
    ranks = rng.pick(4, 8, 16)
    size = rng.pick(64, 4096)
    text = "".join(watchdog(r, "BROADCAST", 1, size, -1) for r in range(ranks))
    return Plot(
        _setup(rng, ranks, "on new nodes never gets past its first collective"),
        (exhibit("rank-logs", "job.log", text),),
        number=Decisive("How many collectives had been completed before the timeout?", 0, within=EXACT),
    )


@planted("shm-too-small")
def small_shm(rng: Rng) -> Plot:
    host = hosts_of(rng, 1)
    wanted = rng.whole(9, 40) * 2**20
    text = init_log(host, rng.pick(2, 4, 8)) + nccl(
        host[0],
        f"Error: failed to extend /dev/shm/nccl-v6Hk5d to {wanted} bytes, error: No space left on device (28)",
        1,
        "WARN",
        "misc/shmutils.cc:72 ",
    )
    return Plot(
        "A job that runs on the bare node fails at once inside a container on the same node, before the first step. Why?",
        (exhibit("nccl-log", "nccl.log", text),),
        number=Decisive("How many bytes were asked for when it failed?", wanted, Unit.BYTE),
    )


@planted("memlock-limit")
def small_memlock(rng: Rng) -> Plot:
    hosts = hosts_of(rng, 2)
    call = rng.pick("ibv_create_cq", "ibv_reg_mr_iova2")
    text = init_log(hosts, 1) + nccl(
        hosts[0], f"Call to {call} failed with error Cannot allocate memory", 0, "WARN", "misc/ibvwrap.cc:262 "
    )
    limits = "Max locked memory         65536                65536                bytes     \n"
    return Plot(
        "A two-node job works when started by hand and fails at start under the scheduler, with an error about memory although hosts and GPUs are empty. Why?",
        (exhibit("nccl-log", "nccl.log", text), exhibit("limits", "limits", limits)),
        number=Decisive("How many bytes may the process lock?", 65536, Unit.BYTE),
    )


@planted("wrong-network-interface")
def docker_bridge(rng: Rng) -> Plot:
    hosts = hosts_of(rng, 2)
    bridge = rng.pick("docker0:172.17.0.1", "virbr0:192.168.122.1")
    text = (
        init_log(hosts, 1, "Socket", "NET/Socket/0")
        + nccl(hosts[0], f"NET/Socket : Using [0]{bridge}<0>")
        + nccl(hosts[0], "Call to connect returned No route to host, retrying", 0, "WARN", "misc/socket.cc:484 ")
    )
    return Plot(
        "Each node works alone; two nodes together never start. Ping between them is fine. What is wrong?",
        (exhibit("nccl-log", "nccl.log", text),),
        number=Decisive("How many nodes say that they use the network Socket?", 2, within=EXACT),
    )


@planted("nccl-version-mismatch")
def two_builds(rng: Rng) -> Plot:
    hosts = hosts_of(rng, 2)
    old, new = rng.pick("2.21.5+cuda12.4", "2.19.3+cuda12.1"), rng.pick("2.27.3+cuda12.9", "2.26.2+cuda12.8")
    one = nccl(hosts[0], f"NCCL version {new}") + nccl(
        hosts[0],
        f"Message truncated : received {rng.pick(1024, 2048)} bytes instead of 256",
        0,
        "WARN",
        "bootstrap.cc:77 ",
    )
    return Plot(
        "After half of the nodes got a new image, jobs that mix old and new nodes fail at start; jobs on either half run. Why?",
        (
            exhibit("nccl-log", "nccl.a.log", one),
            exhibit("nccl-log", "nccl.b.log", nccl(hosts[1], f"NCCL version {old}")),
        ),
        number=Decisive("How many versions of the library do the logs name?", 2, within=EXACT),
    )


@planted("p2p-acs-iommu")
def pairs_hang(rng: Rng) -> Plot:
    bad = {(0, 1), (2, 3)}
    rows = [
        f"gpu {a},{b}: {'timed out after 60 s' if (a, b) in bad else f'ok {rng.between(1, 2):.1f} s'}\n"
        for a in range(4)
        for b in range(a + 1, 4)
    ]
    text = "".join(rows) + f"gpu 0,1 NCCL_P2P_DISABLE=1: ok {rng.between(1.5, 2.5):.1f} s\n"
    return Plot(
        "On a new PCIe server without NVLink, some pairs of GPUs hang in the first all-reduce and others work. What is going on?",
        (exhibit("pair-test", "pairs.txt", text), exhibit("topology", "topo.txt", topology("PIX", 4), False)),
        number=Decisive("How many pairs time out with everything at its default?", len(bad), within=EXACT),
    )


@planted("job-failed")
def own_error(rng: Rng) -> Plot:
    code, words = rng.pick(
        (1, "ValueError: batch_size must be positive, got 0"),
        (1, "yaml.scanner.ScannerError: mapping values are not allowed here"),
        (2, "train.py: error: unrecognized arguments: --max-lenght 4096"),
        (3, "RuntimeError: no checkpoint found in /ckpt/run7"),
    )
    about = {
        "stallwise_bundle": 1,
        "command": ["python", "train.py"],
        "exit_code": code,
        "last_words": ["loading configuration", "Traceback (most recent call last):", words],
        "seconds": rng.whole(3, 20),
    }
    return Plot(
        f"A job submitted for the night ended after {about['seconds']} seconds on every node it was tried on. The scheduler says only: FAILED. Where do you start?",
        (exhibit("rank-logs", "bundle.json", json.dumps(about)),),
        number=Decisive("Which exit code did it leave with?", code, within=EXACT),
    )
