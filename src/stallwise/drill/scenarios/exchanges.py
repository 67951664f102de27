# ruff: noqa: E501
"""Ranks that exchange: every collective lasts what the cost model of the fabric says, the overlap is what was planted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from stallwise.drill.artifacts.rank_traces import RankTrace
from stallwise.drill.artifacts.rng import Rng
from stallwise.drill.incident import EXACT, Decisive, Plot, exhibit
from stallwise.drill.scenarios._planted import planted
from stallwise.physics.costs.collectives import collective_time
from stallwise.physics.costs.topology import DGX_A100, DGX_H100
from stallwise.units import Unit

RANKS, STEPS = 2, 4  # files that are handed out; the group may be larger
GEMM = "nvjet_sm90_tst_256x128_64x4_2x1"


@dataclass(frozen=True, slots=True)
class Exchange:
    """A collective of a step: after which kernel it may start, and whether the next kernel waits for it."""

    op: str
    size_bytes: float
    after: int
    blocks: bool


def _traces(
    rng: Rng, kernel_us: Sequence[float], exchanges: Sequence[Exchange], group: int, inside: bool
) -> tuple[list[str], float]:
    """Files of two ranks, and the time a step in which only communication runs."""
    fabric = DGX_H100 if inside else DGX_A100
    files, bare_us = [], 0.0
    for rank in range(RANKS):
        trace, clock = RankTrace(rank, group), 0.0
        for number in range(STEPS):
            begin, wire, bare_us = clock, clock, 0.0
            for place, us in enumerate(kernel_us):
                trace.kernel(GEMM, clock, us)
                clock += us + 1.0
                for exchange in (e for e in exchanges if e.after == place):
                    name = "all-to-all" if exchange.op == "all_to_all" else "all-reduce"
                    took = (
                        1e6
                        * collective_time(
                            name, exchange.size_bytes, group, fabric, per_domain=8 if inside else 1
                        ).seconds
                    )
                    took *= rng.near(1.0, 0.01)
                    start = max(wire, clock) + 0.2 * rank
                    trace.collective(exchange.op, exchange.size_bytes, start, took, group)
                    wire = start + took
                    if exchange.blocks:
                        bare_us += wire - clock
                        clock = wire + 2.0
            if wire > clock:
                bare_us += wire - clock
                clock = wire
            trace.kernel("multi_tensor_apply_kernel<FusedAdam>", clock + 2.0, 200.0)
            clock += 220.0
            trace.step(number, begin, clock - begin)
        files.append(trace.text())
    return files, bare_us


def _plot(setup: str, files: list[str], number: Decisive) -> Plot:
    return Plot(setup, tuple(exhibit("trace", f"rank{r}.json", t) for r, t in enumerate(files)), number)


@planted("exposed-communication")
def after_backward(rng: Rng) -> Plot:
    layers, us = rng.whole(16, 24), rng.between(3600, 4400)
    size = rng.between(80e6, 120e6)
    buckets = [Exchange("allreduce", size, layers - 1, True) for _ in range(6)]
    files, bare = _traces(rng, [us] * layers, buckets, 16, False)
    return _plot(
        "Data-parallel training on 16 GPUs of two nodes reaches 60% of sixteen times one GPU. Nothing crashes and every GPU does the same. Why?",
        files,
        Decisive("How long does nothing but communication run in a step?", bare * 1e-6, Unit.SECOND, 1.2),
    )


@planted("bucket-too-small")
def tiny_buckets(rng: Rng) -> Plot:
    layers, us, count = 24, rng.between(90, 130), rng.pick(60, 80, 100)
    small = [Exchange("allreduce", rng.between(60e3, 120e3), layers - 1, True) for _ in range(count)]
    files, _ = _traces(rng, [us] * layers, small, 8, True)
    return _plot(
        "A model with many small layers scales badly over 8 GPUs of one node; the links test at full speed and the gradients are only a few megabytes. Why?",
        files,
        Decisive("How many reductions does a step make?", count, within=EXACT),
    )


@planted("all-to-all-bound")
def expert_exchange(rng: Rng) -> Plot:
    layers, us = 12, rng.between(500, 700)
    size = rng.between(60e6, 90e6)
    trips = [Exchange("all_to_all", size, layer, True) for layer in range(layers) for _ in range(2)]
    files, bare = _traces(rng, [us] * layers, trips, 16, False)
    return _plot(
        "A mixture of experts over 16 GPUs of two nodes takes twice the time of its arithmetic. Tokens are spread evenly. Where does the rest go?",
        files,
        Decisive("How long does nothing but communication run in a step?", bare * 1e-6, Unit.SECOND, 1.2),
    )


@planted("per-gpu-batch-too-small")
def strong_scaling(rng: Rng) -> Plot:
    layers, us = 16, rng.between(110, 150)
    size = rng.between(35e6, 50e6)
    buckets = [Exchange("allreduce", size, layer, False) for layer in range(8, layers)]
    files, _ = _traces(rng, [us] * layers, buckets, 16, False)
    return _plot(
        "The batch was kept and the job moved from 2 to 16 GPUs: it is hardly faster. Gradients are exchanged during backward as they should. Why?",
        files,
        Decisive("How much matrix work has each GPU in a step?", layers * us * 1e-6, Unit.SECOND),
    )


@planted("network-congestion")
def shared_uplink(rng: Rng) -> Plot:
    alone, beside = rng.between(140, 180), rng.between(125, 150)
    left = alone - beside if alone - beside > 10 else rng.between(12, 25)

    def iperf(clock: str, client: str, node: str, rate: float) -> str:
        flows = "".join(
            f"[{5 + 2 * i:3d}]   0.00-10.00  sec  {rate / 8 * 1.25:5.1f} GBytes  {rate / 8:4.1f} Gbits/sec  {rng.whole(30, 400):5d}             sender\n"
            for i in range(8)
        )
        total = f"[SUM]   0.00-10.00  sec  {rate * 1.25:5.0f} GBytes  {rate:4.0f} Gbits/sec  {rng.whole(900, 7000)}             sender\n[SUM]   0.00-10.01  sec  {rate * 1.25:5.0f} GBytes  {rate:4.0f} Gbits/sec                  receiver\n"
        return f"# {clock} {client} on {node}\n$ iperf3 -c node-02 -P 8 -t 10\nConnecting to host node-02, port 5201\n{flows}{total}\niperf Done.\n"

    text = (
        iperf("10:02:10", "pod-a", "node-01", alone)
        + iperf("10:06:35", "pod-a", "node-01", left)
        + iperf("10:06:35", "pod-b", "node-01", beside)
    )
    return Plot(
        f"Steps between two nodes are fast in the morning and {rng.between(3, 6):.0f} times slower at some hours, then fast again. Nobody changed the job. Why?",
        (exhibit("nccl-tests", "iperf.log", text),),
        Decisive("What is left of the link for this job at the bad hour?", left * 0.125e9, Unit.BYTE_PER_S),
    )
