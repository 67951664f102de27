"""Ranks, links and experts, told by NCCL's log, tables and measured times."""

from __future__ import annotations

from stallwise.drill.artifacts.background import topology
from stallwise.drill.artifacts.fabric import hosts_of, init_log, inspector, perf_table
from stallwise.drill.artifacts.rng import Rng
from stallwise.drill.incident import exhibit
from stallwise.drill.scenarios import Drawn, drawn, planted


@planted("straggler-rank")
def late_rank(rng: Rng) -> Drawn:
    ranks = rng.pick(4, 8, 16)
    late, wait = rng.whole(0, ranks - 1), rng.between(600, 3000)
    times = ((r, n, 20 if r == late else rng.near(wait, 0.02)) for n in range(20) for r in range(ranks))
    records = "".join(inspector(r, ranks, n, 2**20 * 64, time_us) for r, n, time_us in times)
    return drawn(late, exhibit("rank-times", "inspector.jsonl", records), gpus=ranks * 8)


@planted("network-fallback-socket")
def sockets(rng: Rng) -> Drawn:
    hosts = hosts_of(rng, rng.pick(2, 4))
    text = init_log(hosts, rng.pick(4, 8), "Socket", "NET/Socket/0")
    return drawn(len(hosts), exhibit("nccl-log", "nccl.log", text))


@planted("gdr-disabled")
def through_the_host(rng: Rng) -> Drawn:
    hosts = hosts_of(rng, rng.pick(2, 4))
    disabled = f"{hosts[0]}:1:1 [0] NCCL INFO NET/IB : GPU Direct RDMA Disabled for HCA 0 'mlx5_0'\n"
    text = init_log(hosts, rng.pick(4, 8), via="NET/IB/0", extra=disabled if rng.chance(0.6) else "")
    return drawn(len(hosts), exhibit("nccl-log", "nccl.log", text))


@planted("tp-crosses-nodes")
def wide_tensor_parallel(rng: Rng) -> Drawn:
    text = "server_args=ServerArgs(model_path='x', tp_size=16, nnodes=2)\n" + init_log(hosts_of(rng, 2), 8)
    return drawn(16, exhibit("nccl-log", "nccl.log", text))


@planted("collective-topology-cliff")
def boundary(rng: Rng) -> Drawn:
    base, jump, place = rng.between(20, 60), rng.between(3.5, 8), rng.whole(2, 3)
    times = {64 * 2**i: base * (1 + 0.1 * i) * (jump if i > place else 1) for i in range(5)}
    text = "ranks,time_ms\n" + "".join(f"{n},{t:.1f}\n" for n, t in times.items())
    series = [f"{t:.0f} ms at {n}" for n, t in times.items()]
    factor = times[64 * 2 ** (place + 1)] / times[64 * 2**place]
    return drawn(factor, exhibit("scaling", "scaling.csv", text), series=", ".join(series[: place + 2]))


@planted("pcie-instead-of-nvlink")
def below_nvlink(rng: Rng) -> Drawn:
    device, busbw = rng.pick("NVIDIA H100 80GB HBM3", "NVIDIA A100-SXM4-80GB"), rng.between(14, 26)
    test = exhibit("nccl-tests", "all_reduce_perf.txt", perf_table(device, 8, 1, busbw))
    return drawn(busbw * 1e9, test, exhibit("topology", "topo.txt", topology("PHB")), device=device)


@planted("moe-imbalance")
def hot_experts(rng: Rng) -> Drawn:
    ranks, hot = 8, rng.whole(0, 7)
    load = [(rng.between(2.4, 3.2) if r == hot else 1.0) * rng.near(8000, 0.03) for r in range(ranks)]
    text = "rank,tokens_received,dispatch_ms\n" + "".join(f"{r},{t:.0f},{t / 4000:.2f}\n" for r, t in enumerate(load))
    return drawn(max(load) / sorted(load)[4], exhibit("rank-times", "experts.csv", text))
