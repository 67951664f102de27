# ruff: noqa: E501
"""Ranks, links and pipelines, told by NCCL's log, tables and stated times."""

from __future__ import annotations

from stallwise.drill.artifacts.background import topology
from stallwise.drill.artifacts.fabric import hosts_of, init_log, inspector, perf_table
from stallwise.drill.artifacts.rng import Rng
from stallwise.drill.incident import EXACT, Decisive, Plot, exhibit
from stallwise.drill.scenarios._planted import planted
from stallwise.units import Unit


@planted("straggler-rank")
def late_rank(rng: Rng) -> Plot:
    ranks = rng.pick(4, 8, 16)
    late, wait = rng.whole(0, ranks - 1), rng.between(600, 3000)
    records = "".join(
        inspector(r, ranks, n, 2**20 * 64, 20 if r == late else rng.near(wait, 0.02))
        for n in range(20)
        for r in range(ranks)
    )
    return Plot(
        f"MFU fell from {rng.whole(42, 50)}% to {rng.whole(20, 30)}% after {rng.whole(2, 9)} hours on {ranks * 8} GPUs and stays there. No crash, the loss is normal, nothing was changed. What do you check?",
        (exhibit("rank-times", "inspector.jsonl", records),),
        number=Decisive("Which rank do all the others wait for?", late, within=EXACT),
    )


def _slow_network(rng: Rng) -> str:
    return f"The same job scales well inside a node and reaches {rng.between(0.2, 0.45):.0%} of linear on {rng.pick(2, 4)} nodes with 400 Gb/s links. The fabric team says the links are up. Why?"


@planted("network-fallback-socket")
def sockets(rng: Rng) -> Plot:
    hosts = hosts_of(rng, rng.pick(2, 4))
    text = init_log(hosts, rng.pick(4, 8), "Socket", "NET/Socket/0")
    return Plot(
        _slow_network(rng),
        (exhibit("nccl-log", "nccl.log", text),),
        number=Decisive("How many nodes say that they use the network Socket?", len(hosts), within=EXACT),
    )


@planted("gdr-disabled")
def through_the_host(rng: Rng) -> Plot:
    hosts = hosts_of(rng, rng.pick(2, 4))
    extra = (
        f"{hosts[0]}:1:1 [0] NCCL INFO NET/IB : GPU Direct RDMA Disabled for HCA 0 'mlx5_0'\n"
        if rng.chance(0.6)
        else ""
    )
    return Plot(
        _slow_network(rng),
        (exhibit("nccl-log", "nccl.log", init_log(hosts, rng.pick(4, 8), via="NET/IB/0", extra=extra)),),
        number=Decisive("How many nodes send to the next one without GDRDMA?", len(hosts), within=EXACT),
    )


@planted("tp-crosses-nodes")
def wide_tensor_parallel(rng: Rng) -> Plot:
    text = "server_args=ServerArgs(model_path='x', tp_size=16, nnodes=2)\n" + init_log(hosts_of(rng, 2), 8)
    return Plot(
        "A model that just does not fit one node is served over two; each token now takes several times as long as arithmetic says. RDMA is on. Why?",
        (exhibit("nccl-log", "nccl.log", text),),
        number=Decisive("How many ranks share one layer?", 16, within=EXACT),
    )


@planted("collective-topology-cliff")
def boundary(rng: Rng) -> Plot:
    base, jump, place = rng.between(20, 60), rng.between(3.5, 8), rng.whole(2, 3)
    sizes = [64, 128, 256, 512, 1024]
    times = [base * (1 + 0.1 * i) * (jump if i > place else 1) for i in range(5)]
    text = "ranks,time_ms\n" + "".join(f"{n},{t:.1f}\n" for n, t in zip(sizes, times, strict=True))
    series = ", ".join(f"{t:.0f} ms at {n}" for n, t in zip(sizes[: place + 2], times, strict=False))
    return Plot(
        f"The gradient all-reduce takes {series} GPUs; ring, same fabric, same bytes per rank. Why?",
        (exhibit("scaling", "scaling.csv", text),),
        number=Decisive(
            "By which factor does the time jump at the break?", times[place + 1] / times[place], Unit.RATIO
        ),
    )


@planted("pcie-instead-of-nvlink")
def below_nvlink(rng: Rng) -> Plot:
    device, busbw = rng.pick("NVIDIA H100 80GB HBM3", "NVIDIA A100-SXM4-80GB"), rng.between(14, 26)
    return Plot(
        f"Tensor parallelism over 8 GPUs of one node ({device}) is slower than over 2. Why?",
        (
            exhibit("nccl-tests", "all_reduce_perf.txt", perf_table(device, 8, 1, busbw)),
            exhibit("topology", "topo.txt", topology("PHB")),
        ),
        number=Decisive("Which bus bandwidth does the test reach?", busbw * 1e9, Unit.BYTE_PER_S),
    )


@planted("moe-imbalance")
def hot_experts(rng: Rng) -> Plot:
    ranks, hot = 8, rng.whole(0, 7)
    rows = [(r, (rng.between(2.4, 3.2) if r == hot else 1.0) * rng.near(8000, 0.03)) for r in range(ranks)]
    text = "rank,tokens_received,dispatch_ms\n" + "".join(f"{r},{t:.0f},{t / 4000:.2f}\n" for r, t in rows)
    return Plot(
        "A mixture of experts on 8 GPUs steps at a third of the planned rate; the exchanges take most of it, yet the links test at full speed. Why?",
        (exhibit("rank-times", "experts.csv", text),),
        number=Decisive(
            "How many times the median load has the busiest rank?",
            max(t for _, t in rows) / sorted(t for _, t in rows)[4],
            Unit.RATIO,
        ),
    )


@planted("pipeline-p2p-latency")
def long_hand_offs(rng: Rng) -> Plot:
    micro, share = rng.pick(32, 64), rng.whole(25, 35)
    base = rng.between(4, 8)
    case = f'symptom = "pipeline bubble is larger than expected"\npp = 8\nmicrobatches = {micro}\nschedule = "1F1B"\nbubble = "{rng.whole(38, 46)}%"\nbubble_expected = "{7 / (micro + 7):.0%}"\nstragglers = false\nfabric_healthy = true\ncheckpointing = false\nloss_normal = true\n'
    timing = (
        "stage_time = [" + ", ".join(f'"{rng.near(base):.2f}ms"' for _ in range(8)) + f']\np2p_share = "{share}%"\n'
    )
    return Plot(
        f"A pipeline of 8 stages with {micro} short micro-batches of {base:.0f} ms idles twice as much as its schedule must. Every stage takes the same time. Why?",
        (exhibit("case", "case.toml", case, False), exhibit("stage-times", "stages.toml", timing)),
        number=Decisive("Which share of a micro-batch do the hand-offs take?", share / 100, Unit.SHARE),
    )


@planted("pipeline-bubble")
def too_few_micro_batches(rng: Rng) -> Plot:
    stages, micro = 8, rng.pick(8, 12, 16)
    ideal = (stages - 1) / (micro + stages - 1)
    base = rng.between(18, 30)
    case = f'symptom = "pipeline bubble is larger than expected"\npp = {stages}\nmicrobatches = {micro}\nschedule = "1F1B"\nbubble = "{100 * ideal * rng.between(1.0, 1.04):.0f}%"\nstragglers = false\nfabric_healthy = true\ncheckpointing = false\nloss_normal = true\n'
    timing = (
        "stage_time = ["
        + ", ".join(f'"{rng.near(base, 0.003):.1f}ms"' for _ in range(stages))
        + ']\np2p_share = "1%"\n'
    )
    return Plot(
        f"A pipeline of {stages} stages with {micro} micro-batches idles {ideal:.0%} of the time. Somebody blames the network. What do you say?",
        (exhibit("case", "case.toml", case, False), exhibit("stage-times", "stages.toml", timing)),
        number=Decisive("Which share of the step must this schedule idle?", ideal, Unit.SHARE),
    )
