# ruff: noqa: E501
"""Ranks that exchange: every collective lasts what the cost model of the fabric says, the overlap is what was planted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from stallwise.drill.artifacts.rank_traces import RankTrace
from stallwise.drill.artifacts.rng import Rng
from stallwise.drill.incident import Exhibit, exhibit
from stallwise.drill.scenarios import Drawn, drawn, planted
from stallwise.physics.costs.collectives import collective_time
from stallwise.physics.costs.topology import DGX_A100, DGX_H100

RANKS, STEPS = 2, 4  # files that are handed out; the group may be larger
GEMM = "nvjet_sm90_tst_256x128_64x4_2x1"
NAMES = {"all_to_all": "all-to-all", "allreduce": "all-reduce"}


@dataclass(frozen=True, slots=True)
class Exchange:
    """A collective of a step: after which kernel it may start, and whether the next kernel waits for it."""

    op: str
    size_bytes: float
    after: int
    blocks: bool


def _traces(
    rng: Rng, kernel_us: Sequence[float], exchanges: Sequence[Exchange], group: int, inside: bool
) -> tuple[tuple[Exhibit, ...], float]:
    """Files of two ranks, and the time a step in which only communication runs."""
    fabric, per_domain = (DGX_H100, 8) if inside else (DGX_A100, 1)
    files, bare_us = [], 0.0
    for rank in range(RANKS):
        trace, clock = RankTrace(rank, group), 0.0
        for number in range(STEPS):
            begin, wire, bare_us = clock, clock, 0.0
            for place, us in enumerate(kernel_us):
                trace.kernel(GEMM, clock, us)
                clock += us + 1.0
                for exchange in (e for e in exchanges if e.after == place):
                    took = rng.near(
                        1e6
                        * collective_time(
                            NAMES[exchange.op], exchange.size_bytes, group, fabric, per_domain=per_domain
                        ).seconds,
                        0.01,
                    )
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
    return tuple(exhibit("trace", f"rank{r}.json", text) for r, text in enumerate(files)), bare_us * 1e-6


@planted("exposed-communication")
def after_backward(rng: Rng) -> Drawn:
    layers, us, size = rng.whole(16, 24), rng.between(3600, 4400), rng.between(80e6, 120e6)
    buckets = [Exchange("allreduce", size, layers - 1, True) for _ in range(6)]
    files, bare_s = _traces(rng, [us] * layers, buckets, 16, False)
    return drawn(bare_s, *files)


@planted("bucket-too-small")
def tiny_buckets(rng: Rng) -> Drawn:
    layers, us, count = 24, rng.between(90, 130), rng.pick(60, 80, 100)
    small = [Exchange("allreduce", rng.between(60e3, 120e3), layers - 1, True) for _ in range(count)]
    return drawn(count, *_traces(rng, [us] * layers, small, 8, True)[0])


@planted("all-to-all-bound")
def expert_exchange(rng: Rng) -> Drawn:
    layers, us, size = 12, rng.between(500, 700), rng.between(60e6, 90e6)
    trips = [Exchange("all_to_all", size, layer, True) for layer in range(layers) for _ in range(2)]
    files, bare_s = _traces(rng, [us] * layers, trips, 16, False)
    return drawn(bare_s, *files)


@planted("per-gpu-batch-too-small")
def strong_scaling(rng: Rng) -> Drawn:
    layers, us, size = 16, rng.between(110, 150), rng.between(35e6, 50e6)
    buckets = [Exchange("allreduce", size, layer, False) for layer in range(8, layers)]
    return drawn(layers * us * 1e-6, *_traces(rng, [us] * layers, buckets, 16, False)[0])


def _iperf(rng: Rng, clock: str, client: str, rate: float) -> str:
    """Eight flows of iperf3 and their sum, in Gbit/s."""
    flow = "[{:3d}]   0.00-10.00  sec  {:5.1f} GBytes  {:4.1f} Gbits/sec  {:5d}             sender\n"
    flows = "".join(flow.format(5 + 2 * i, rate / 8 * 1.25, rate / 8, rng.whole(30, 400)) for i in range(8))
    total = f"sec  {rate * 1.25:5.0f} GBytes  {rate:4.0f} Gbits/sec"
    sums = f"[SUM]   0.00-10.00  {total}  {rng.whole(900, 7000)}             sender\n[SUM]   0.00-10.01  {total}                  receiver\n"
    return f"# {clock} {client} on node-01\n$ iperf3 -c node-02 -P 8 -t 10\nConnecting to host node-02, port 5201\n{flows}{sums}\niperf Done.\n"


@planted("network-congestion")
def shared_uplink(rng: Rng) -> Drawn:
    alone, beside = rng.between(140, 180), rng.between(125, 150)
    left = alone - beside if alone - beside > 10 else rng.between(12, 25)
    runs = (("10:02:10", "pod-a", alone), ("10:06:35", "pod-a", left), ("10:06:35", "pod-b", beside))
    return drawn(left * 0.125e9, exhibit("nccl-tests", "iperf.log", "".join(_iperf(rng, *run) for run in runs)))
