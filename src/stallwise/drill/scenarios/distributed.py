# ruff: noqa: E501
"""Ranks, links and pipelines, told by NCCL's log, tables and stated times."""

from __future__ import annotations

from stallwise.drill.incident import EXACT, Decisive, Plot, exhibit
from stallwise.drill.papers.background import topology
from stallwise.drill.papers.dice import Dice
from stallwise.drill.papers.fabric import hosts_of, init_log, inspector, perf_table
from stallwise.drill.scenarios._planted import planted
from stallwise.units import Unit


@planted("straggler-rank")
def late_rank(dice: Dice) -> Plot:
    ranks = dice.pick(4, 8, 16)
    late, wait = dice.whole(0, ranks - 1), dice.between(600, 3000)
    records = "".join(
        inspector(r, ranks, n, 2**20 * 64, 20 if r == late else dice.near(wait, 0.02))
        for n in range(20)
        for r in range(ranks)
    )
    return Plot(
        f"MFU fell from {dice.whole(42, 50)}% to {dice.whole(20, 30)}% after {dice.whole(2, 9)} hours on {ranks * 8} GPUs and stays there. No crash, the loss is normal, nothing was changed. What do you check?",
        (exhibit("rank-times", "inspector.jsonl", records),),
        number=Decisive("Which rank do all the others wait for?", late, within=EXACT),
    )


@planted("straggler-rank")
def mfu_collapse(dice: Dice) -> Plot:
    before, after, rank = dice.whole(40, 52), dice.whole(18, 28), dice.whole(0, 500)
    case = f'symptom = "MFU dropped and stayed low"\nparameters = "70B"\ngpu = "h100"\ngpus = 512\ntp = 8\npp = 4\ndp = 16\nmfu = "{after}%"\nsteady_for = "{dice.whole(2, 20)}h"\nloss_normal = true\nchanged = "nothing"\n\n[before]\nmfu = "{before}%"\n'
    timing = f'slow_node = "node {rank // 8}, rank {rank}"\nslow_rank_ratio = {before / after:.2f}\nrank_local = true\n'
    return Plot(
        f"A 70B model on 512 H100 (TP 8, PP 4, DP 16) held {before}% MFU for hours, then fell to {after}% and stayed. No OOM, no crash, loss normal. What do you check?",
        (exhibit("case", "case.toml", case, False), exhibit("rank-times", "rank_times.toml", timing)),
        number=Decisive("Which rank is the slow one?", rank, within=EXACT),
    )


def _slow_network(dice: Dice) -> str:
    return f"The same job scales well inside a node and reaches {dice.between(0.2, 0.45):.0%} of linear on {dice.pick(2, 4)} nodes with 400 Gb/s links. The fabric team says the links are up. Why?"


@planted("network-fallback-socket")
def sockets(dice: Dice) -> Plot:
    hosts = hosts_of(dice, dice.pick(2, 4))
    text = init_log(hosts, dice.pick(4, 8), "Socket", "NET/Socket/0")
    return Plot(
        _slow_network(dice),
        (exhibit("nccl-log", "nccl.log", text),),
        number=Decisive("How many nodes say that they use the network Socket?", len(hosts), within=EXACT),
    )


@planted("gdr-disabled")
def through_the_host(dice: Dice) -> Plot:
    hosts = hosts_of(dice, dice.pick(2, 4))
    extra = (
        f"{hosts[0]}:1:1 [0] NCCL INFO NET/IB : GPU Direct RDMA Disabled for HCA 0 'mlx5_0'\n"
        if dice.chance(0.6)
        else ""
    )
    return Plot(
        _slow_network(dice),
        (exhibit("nccl-log", "nccl.log", init_log(hosts, dice.pick(4, 8), via="NET/IB/0", extra=extra)),),
        number=Decisive("How many nodes send to the next one without GDRDMA?", len(hosts), within=EXACT),
    )


@planted("tp-crosses-nodes")
def wide_tensor_parallel(dice: Dice) -> Plot:
    text = "server_args=ServerArgs(model_path='x', tp_size=16, nnodes=2)\n" + init_log(hosts_of(dice, 2), 8)
    return Plot(
        "A model that just does not fit one node is served over two; each token now takes several times as long as arithmetic says. RDMA is on. Why?",
        (exhibit("nccl-log", "nccl.log", text),),
        number=Decisive("How many ranks share one layer?", 16, within=EXACT),
    )


@planted("collective-topology-cliff")
def border(dice: Dice) -> Plot:
    base, jump, place = dice.between(20, 60), dice.between(3.5, 8), dice.whole(2, 3)
    sizes = [64, 128, 256, 512, 1024]
    times = [base * (1 + 0.1 * i) * (jump if i > place else 1) for i in range(5)]
    text = "ranks,time_ms\n" + "".join(f"{n},{t:.1f}\n" for n, t in zip(sizes, times, strict=True))
    told = ", ".join(f"{t:.0f} ms at {n}" for n, t in zip(sizes[: place + 2], times, strict=False))
    return Plot(
        f"The gradient all-reduce takes {told} GPUs; ring, same fabric, same bytes per rank. Why?",
        (exhibit("scaling", "scaling.csv", text),),
        number=Decisive(
            "By which factor does the time jump at the break?", times[place + 1] / times[place], Unit.RATIO
        ),
    )


@planted("pcie-instead-of-nvlink")
def below_nvlink(dice: Dice) -> Plot:
    device, busbw = dice.pick("NVIDIA H100 80GB HBM3", "NVIDIA A100-SXM4-80GB"), dice.between(14, 26)
    return Plot(
        f"Tensor parallelism over 8 GPUs of one node ({device}) is slower than over 2. Why?",
        (
            exhibit("nccl-tests", "all_reduce_perf.txt", perf_table(device, 8, 1, busbw)),
            exhibit("topology", "topo.txt", topology("PHB")),
        ),
        number=Decisive("Which bus bandwidth does the test reach?", busbw * 1e9, Unit.BYTE_PER_S),
    )


@planted("pipeline-stage-imbalance")
def heavy_last_stage(dice: Dice) -> Plot:
    stages, micro = 8, dice.pick(32, 64)
    base = dice.between(18, 30)
    times = [base * 1.25, *[dice.near(base) for _ in range(stages - 2)], base * dice.between(1.7, 2.1)]
    idle = dice.whole(38, 46)
    case = f'symptom = "pipeline bubble is larger than expected"\npp = {stages}\nmicrobatches = {micro}\nschedule = "1F1B"\nbubble = "{idle}%"\nbubble_expected = "{7 / (micro + 7):.0%}"\nstragglers = false\nfabric_healthy = true\ncheckpointing = false\nloss_normal = true\n'
    timing = "stage_time = [" + ", ".join(f'"{t:.1f}ms"' for t in times) + ']\np2p_share = "3%"\n'
    return Plot(
        f"Pipeline of {stages} stages, 1F1B, {micro} micro-batches: the formula says {7 / (micro + 7):.0%} idle, measured are {idle}%. No stragglers, fabric healthy. Why?",
        (exhibit("case", "case.toml", case, False), exhibit("stage-times", "stages.toml", timing)),
        number=Decisive(
            "How many times the median stage does the slowest one take?",
            max(times) / sorted(times)[stages // 2],
            Unit.RATIO,
        ),
    )


@planted("moe-imbalance")
def hot_experts(dice: Dice) -> Plot:
    ranks, hot = 8, dice.whole(0, 7)
    rows = [(r, (dice.between(2.4, 3.2) if r == hot else 1.0) * dice.near(8000, 0.03)) for r in range(ranks)]
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
def long_hand_offs(dice: Dice) -> Plot:
    micro, share = dice.pick(32, 64), dice.whole(25, 35)
    base = dice.between(4, 8)
    case = f'symptom = "pipeline bubble is larger than expected"\npp = 8\nmicrobatches = {micro}\nschedule = "1F1B"\nbubble = "{dice.whole(38, 46)}%"\nbubble_expected = "{7 / (micro + 7):.0%}"\nstragglers = false\nfabric_healthy = true\ncheckpointing = false\nloss_normal = true\n'
    timing = (
        "stage_time = [" + ", ".join(f'"{dice.near(base):.2f}ms"' for _ in range(8)) + f']\np2p_share = "{share}%"\n'
    )
    return Plot(
        f"A pipeline of 8 stages with {micro} short micro-batches of {base:.0f} ms idles twice as much as its schedule must. Every stage takes the same time. Why?",
        (exhibit("case", "case.toml", case, False), exhibit("stage-times", "stages.toml", timing)),
        number=Decisive("Which share of a micro-batch do the hand-offs take?", share / 100, Unit.SHARE),
    )


@planted("pipeline-bubble")
def too_few_micro_batches(dice: Dice) -> Plot:
    stages, micro = 8, dice.pick(8, 12, 16)
    ideal = (stages - 1) / (micro + stages - 1)
    base = dice.between(18, 30)
    case = f'symptom = "pipeline bubble is larger than expected"\npp = {stages}\nmicrobatches = {micro}\nschedule = "1F1B"\nbubble = "{100 * ideal * dice.between(1.0, 1.04):.0f}%"\nstragglers = false\nfabric_healthy = true\ncheckpointing = false\nloss_normal = true\n'
    timing = (
        "stage_time = ["
        + ", ".join(f'"{dice.near(base, 0.003):.1f}ms"' for _ in range(stages))
        + ']\np2p_share = "1%"\n'
    )
    return Plot(
        f"A pipeline of {stages} stages with {micro} micro-batches idles {ideal:.0%} of the time. Somebody suspects the network. What do you say?",
        (exhibit("case", "case.toml", case, False), exhibit("stage-times", "stages.toml", timing)),
        number=Decisive("Which share of the step must this schedule idle?", ideal, Unit.SHARE),
    )
