# ruff: noqa: E501
"""Jobs that hang or die together, told by watchdogs, NCCL and launchers."""

from __future__ import annotations

import json

from stallwise.drill.artifacts.background import topology
from stallwise.drill.artifacts.fabric import hosts_of, init_log, nccl, watchdog
from stallwise.drill.artifacts.rng import Rng
from stallwise.drill.incident import Exhibit, exhibit
from stallwise.drill.scenarios import Drawn, drawn, planted


def _by_rank(texts: dict[int, str]) -> tuple[Exhibit, ...]:
    return tuple(exhibit("rank-logs", f"rank{r}.log", t) for r, t in texts.items())


@planted("collective-mismatch")
def different_operations(rng: Rng) -> Drawn:
    ranks, seq, size = rng.pick(4, 8), rng.whole(20, 900), rng.whole(10, 900) * 1024
    odd, other = rng.whole(1, ranks - 1), rng.pick("BROADCAST", "ALLGATHER", "REDUCE_SCATTER")
    logs = {r: watchdog(r, other if r == odd else "ALLREDUCE", seq, size) for r in range(ranks)}
    return drawn(odd, *_by_rank(logs), ranks=ranks)


@planted("rank-died-first")
def one_exception(rng: Rng) -> Drawn:
    ranks, seq, shard = rng.pick(4, 8), rng.whole(20, 400), rng.whole(0, 900)
    error = rng.pick(
        f"FileNotFoundError: [Errno 2] No such file or directory: '/data/shard-{shard}'",
        f"ValueError: token id {50000 + shard} is out of range",
        "KeyError: 'input_ids'",
    )
    dead = rng.whole(0, ranks - 1)
    end = f'[2025-10-15 10:12:00] [rank {dead}] step {seq - 1}\nTraceback (most recent call last):\n  File "train.py", line 3\n{error}\n'
    logs = {r: end if r == dead else watchdog(r, seq=seq, completed=seq - 1) for r in range(ranks)}
    return drawn(dead, *_by_rank(logs), ranks=ranks)


@planted("rank-died-first")
def killed_from_outside(rng: Rng) -> Drawn:
    seq, task = rng.whole(20, 400), rng.whole(3, 7)
    end = f"slurmstepd: error: Detected 1 oom_kill event in StepId=99.0. Some of the step tasks have been OOM Killed.\nsrun: error: node-7: task {task}: Out Of Memory\n"
    text = "".join(watchdog(r, seq=seq, completed=seq - 1) for r in (1, 2)) + end
    return drawn(task, exhibit("rank-logs", "job.log", text), ranks=8)


@planted("uneven-batches")
def one_batch_fewer(rng: Rng) -> Drawn:
    ranks, batches, seq = rng.pick(4, 8), rng.whole(80, 3000), rng.whole(100, 900)
    short = rng.whole(0, ranks - 1)
    last = {r: batches - (r == short) for r in range(ranks)}
    logs = {
        r: f"[rank {r}] epoch 3 train batch {n - 1}/{n}\n" + watchdog(r, seq=seq, completed=seq - 1)
        for r, n in last.items()
    }
    return drawn(short, *_by_rank(logs), ranks=ranks)


@planted("transport-never-worked")
def first_collective(rng: Rng) -> Drawn:
    ranks, size = rng.pick(4, 8, 16), rng.pick(64, 4096)
    text = "".join(watchdog(r, "BROADCAST", 1, size, -1) for r in range(ranks))
    return drawn(0, exhibit("rank-logs", "job.log", text), ranks=ranks)


@planted("shm-too-small")
def small_shm(rng: Rng) -> Drawn:
    (host,), wanted = hosts_of(rng, 1), rng.whole(9, 40) * 2**20
    error = f"Error: failed to extend /dev/shm/nccl-v6Hk5d to {wanted} bytes, error: No space left on device (28)"
    text = init_log((host,), rng.pick(2, 4, 8)) + nccl(host, error, 1, "WARN", "misc/shmutils.cc:72 ")
    return drawn(wanted, exhibit("nccl-log", "nccl.log", text))


@planted("memlock-limit")
def small_memlock(rng: Rng) -> Drawn:
    hosts, call = hosts_of(rng, 2), rng.pick("ibv_create_cq", "ibv_reg_mr_iova2")
    error = f"Call to {call} failed with error Cannot allocate memory"
    text = init_log(hosts, 1) + nccl(hosts[0], error, 0, "WARN", "misc/ibvwrap.cc:262 ")
    limits = "Max locked memory         65536                65536                bytes     \n"
    return drawn(65536, exhibit("nccl-log", "nccl.log", text), exhibit("limits", "limits", limits))


@planted("wrong-network-interface")
def docker_bridge(rng: Rng) -> Drawn:
    hosts, bridge = hosts_of(rng, 2), rng.pick("docker0:172.17.0.1", "virbr0:192.168.122.1")
    used = nccl(hosts[0], f"NET/Socket : Using [0]{bridge}<0>")
    refused = nccl(hosts[0], "Call to connect returned No route to host, retrying", 0, "WARN", "misc/socket.cc:484 ")
    return drawn(2, exhibit("nccl-log", "nccl.log", init_log(hosts, 1, "Socket", "NET/Socket/0") + used + refused))


@planted("nccl-version-mismatch")
def two_builds(rng: Rng) -> Drawn:
    one, other = hosts_of(rng, 2)
    old, new = rng.pick("2.21.5+cuda12.4", "2.19.3+cuda12.1"), rng.pick("2.27.3+cuda12.9", "2.26.2+cuda12.8")
    cut = f"Message truncated : received {rng.pick(1024, 2048)} bytes instead of 256"
    newer = nccl(one, f"NCCL version {new}") + nccl(one, cut, 0, "WARN", "bootstrap.cc:77 ")
    older = nccl(other, f"NCCL version {old}")
    return drawn(2, exhibit("nccl-log", "nccl.a.log", newer), exhibit("nccl-log", "nccl.b.log", older))


@planted("p2p-acs-iommu")
def pairs_hang(rng: Rng) -> Drawn:
    bad, pairs = {(0, 1), (2, 3)}, [(a, b) for a in range(4) for b in range(a + 1, 4)]
    rows = [
        f"gpu {a},{b}: {'timed out after 60 s' if (a, b) in bad else f'ok {rng.between(1, 2):.1f} s'}\n"
        for a, b in pairs
    ]
    text = "".join(rows) + f"gpu 0,1 NCCL_P2P_DISABLE=1: ok {rng.between(1.5, 2.5):.1f} s\n"
    return drawn(
        len(bad), exhibit("pair-test", "pairs.txt", text), exhibit("topology", "topo.txt", topology("PIX", 4), False)
    )


@planted("job-failed")
def own_error(rng: Rng) -> Drawn:
    code, words = rng.pick(
        (1, "ValueError: batch_size must be positive, got 0"),
        (1, "yaml.scanner.ScannerError: mapping values are not allowed here"),
        (2, "train.py: error: unrecognized arguments: --max-lenght 4096"),
        (3, "RuntimeError: no checkpoint found in /ckpt/run7"),
    )
    last, seconds = ["loading configuration", "Traceback (most recent call last):", words], rng.whole(3, 20)
    bundle = {
        "stallwise_bundle": 1,
        "command": ["python", "train.py"],
        "exit_code": code,
        "last_words": last,
        "seconds": seconds,
    }
    return drawn(code, exhibit("rank-logs", "bundle.json", json.dumps(bundle)), seconds=seconds)
