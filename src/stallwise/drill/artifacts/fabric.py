# ruff: noqa: E501  (lines as the libraries print them)
"""NCCL_DEBUG=INFO, the watchdog of torch.distributed, tables by rank."""

from __future__ import annotations

from collections.abc import Sequence

from stallwise.drill.artifacts.rng import Rng


def nccl(host: str, text: str, rank: int = 0, level: str = "INFO", place: str = "") -> str:
    """One line of NCCL."""
    return f"{host}:{100 + rank}:{200 + rank} [{rank}] {place}NCCL {level} {text}\n"


def hosts_of(rng: Rng, count: int) -> tuple[str, ...]:
    """Names as clusters give them."""
    stem, first = rng.pick("node", "gpu", "h100-", "worker", "train-"), rng.whole(1, 60)
    return tuple(f"{stem}{first + i:03d}" for i in range(count))


def init_log(
    hosts: Sequence[str],
    per_host: int,
    net: str = "IB",
    via: str = "NET/IB/0/GDRDMA",
    inside: str = "P2P/CUMEM",
    extra: str = "",
) -> str:
    """How communicators came up and over what each ring leaves a GPU."""
    world, lines = len(hosts) * per_host, []
    for i, host in enumerate(hosts):
        for d in range(per_host):
            rank = i * per_host + d
            peer = (rank + 1) % world
            outside = (rank + 1) % per_host == 0 and len(hosts) > 1
            way = f"[send] via {via}" if outside else f"via {inside}"
            lines.append(nccl(host, f"Using network {net}", d))
            lines.append(
                nccl(
                    host,
                    f"ncclCommInitRank comm 0x{i}{d} rank {rank} nranks {world} cudaDev {d} busId {d}000 commId 0x9 - Init COMPLETE",
                    d,
                )
            )
            lines.append(nccl(host, f"Channel 00/0 : {rank}[{d}] -> {peer}[{peer % per_host}] {way}", d))
    return "".join(lines) + extra


def watchdog(rank: int, op: str = "ALLREDUCE", seq: int = 40, numel: int = 1024, completed: int | None = None) -> str:
    """A rank that waited too long."""
    lines = f"[rank{rank}]:[E1015 10:22:41.{rank:06d} ProcessGroupNCCL.cpp:632] [Rank {rank}] Watchdog caught collective operation timeout: WorkNCCL(SeqNum={seq}, OpType={op}, NumelIn={numel}, NumelOut={numel}, Timeout(ms)=600000) ran for 600040 milliseconds before timing out.\n"
    if completed is not None:
        lines += f"[rank{rank}]:[E1015 10:22:41.{rank:06d} ProcessGroupNCCL.cpp:2268] [PG ID 0 PG GUID 0(default_pg) Rank {rank}]  failure detected by watchdog at work sequence id: {seq} PG status: last enqueued work: {seq}, last completed work: {completed}\n"
    return lines


def inspector(rank: int, ranks: int, number: int, size_bytes: int, time_us: float) -> str:
    """One record of NCCL's inspector plugin: how long this rank was inside the collective."""
    import json

    return json.dumps({
        "header": {"id": "0x1", "rank": rank, "n_ranks": ranks},
        "coll_perf": {"coll": "AllReduce", "coll_sn": number, "coll_msg_size_bytes": size_bytes, "coll_exec_time_us": round(time_us, 1)},
    }) + "\n"  # fmt: skip


def perf_table(device: str, ranks: int, hosts: int, busbw: float) -> str:
    """What all_reduce_perf prints."""
    per = ranks // hosts
    head = "".join(
        f"#  Rank  {r} Group  0 Pid   {r} on  n{r // per} device  {r % per} [0000:01:00] {device}\n"
        for r in range(ranks)
    )
    time_us = 1073741824 * 2 * (ranks - 1) / ranks / (busbw * 1e3)
    return f"# nThread 1 nGpus 1 minBytes 8 maxBytes 1073741824\n{head}#       size         count      type   redop    root     time   algbw   busbw #wrong\n  1073741824     268435456     float     sum      -1   {time_us:.1f}   {busbw * ranks / 2 / (ranks - 1):.2f}   {busbw:.2f}      0\n"
