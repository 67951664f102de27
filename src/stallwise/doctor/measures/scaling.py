"""A scaling series against an alpha-beta model: where it leaves its own trend, and which algorithm would help there.

A ring over n ranks takes wire time (2(n-1)/n, nearly constant) plus 2(n-1) steps of latency. Latency of the smaller
sizes is fitted and carried on; what is measured above it at one size is a border: a slower link from there on.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stallwise.evidence.catalog import fabric, hang, run, stages, stated
from stallwise.evidence.evidence import Evidence, Item
from stallwise.evidence.fact import WHOLE, Fact, Source, Table
from stallwise.physics.costs.cliffs import JUMP_RATIO, explain_jump
from stallwise.units import Unit, show

ORDER = -2
STEP_JUMP = 0.15  # of a whole step's time: much of a step is compute, so a border shows less than in a bare collective
TIMES_TREND = 3.0  # the border's increase over the usual increase per doubling
LEAST_SIZES = 3  # of a group, for a trend
GOOD = 0.9  # efficiency: nobody needs to look
SLOWER_RUN = 1.15  # step time with more GPUs at the same batch each
RUN_QUANTITIES = {
    "gpus": (hang.HANG_WORLD, fabric.GPUS_PER_NODE, fabric.RUN_CARDS), "step_s": (run.STEP_TIME,),
    "exchange_s": (stages.GRADIENT_SYNC, stated.ALLREDUCE_TIME), "runtime_s": (fabric.RUN_TIME,),
    "p2p_off": (fabric.RUN_PEERS_OFF,), "data_parallel": (fabric.RUN_ONE_PROCESS,),
}  # fmt: skip


def from_evidence(evidence: Evidence) -> Iterator[Item]:
    """Facts from series in tables, and from pairs of runs."""
    for table in evidence.table("scaling.series"):
        for label in dict.fromkeys(str(x) for x in table.columns["label"]):
            yield from _series(table, table.columns["label"] == label)
    yield from _bandwidths(evidence)
    yield from _exchanges(evidence)
    yield from _runs(evidence)


def _series(table: Table, chosen: NDArray[Any]) -> Iterator[Fact]:
    chosen = chosen & np.isfinite(table.columns["ranks"])
    order = np.argsort(table.columns["ranks"][chosen], kind="stable")
    ranks = table.columns["ranks"][chosen][order]
    nodes = table.columns["nodes"][chosen][order]
    seconds = table.columns["seconds"][chosen][order]
    rate = table.columns["rate_each"][chosen][order]
    if len(ranks) < 2:
        return
    if np.isnan(seconds).any():
        if not np.isnan(rate).any():
            yield from _rates(ranks, nodes, rate, table.source)
    elif (ranks >= 2).sum() >= LEAST_SIZES:  # one rank exchanges nothing
        yield from _times(ranks[ranks >= 2], seconds[ranks >= 2], table.source)
    if not np.isnan(seconds).any() and len(ranks) >= 2:
        yield Fact(fabric.SCALING_EFFICIENCY, float(seconds[0] / seconds[-1]), table.source, samples=len(ranks))


def _times(ranks: NDArray[Any], seconds: NDArray[Any], source: Source) -> Iterator[Fact]:
    """A bare collective, or a step: the jump that the trend cannot explain."""
    points = [(int(n), float(s)) for n, s in zip(ranks, seconds, strict=True)]
    verdict = explain_jump(points)
    if verdict is None:
        yield Fact(fabric.SCALING_SMOOTH, 1.0, source, samples=len(points))
        return
    measured = dict(points)[verdict.above]
    yield Fact(fabric.SCALING_BOUNDARY, float(verdict.above), source, samples=len(points))
    yield Fact(fabric.SCALING_JUMP, measured / verdict.expected_s, source)
    yield Fact(fabric.SCALING_EXCESS, measured - verdict.expected_s, source)
    listed = ", ".join(f"{show(s, Unit.SECOND)} at {n}" for n, s in points)
    yield Fact(fabric.SCALING_BEFORE, f"{listed}; the trend gives {show(verdict.expected_s, Unit.SECOND)}; "
                                       f"{verdict.ratio:.3g}x the time at {verdict.below}", source)  # fmt: skip
    if verdict.latency_possible:
        advice = (
            f"a tree: its steps grow with log2 of the ranks; a ring of {verdict.above} takes {2 * (verdict.above - 1)}"
        )
    else:
        advice = (
            f"a hierarchical all-reduce (reduce inside each domain first, cross once): each new step would have to take "
            f"{show(verdict.needed_step_latency_s, Unit.SECOND)}, so it is bandwidth, {verdict.narrower_ratio:.1f}x less of it"
        )
    yield Fact(fabric.SCALING_ADVICE, advice, source)


def _rates(ranks: NDArray[Any], nodes: NDArray[Any], rate: NDArray[Any], source: Source) -> Iterator[Fact]:
    """Speed per GPU: the doubling at which it falls far more than before."""
    efficiency = float(rate[-1] / rate[0])
    yield Fact(fabric.SCALING_EFFICIENCY, efficiency, source, samples=len(rate))
    cost = 1 / rate
    growth = [
        (float(b / a) - 1) / max(float(np.log2(m / n)), 1e-9)
        for (n, a), (m, b) in pairwise(zip(ranks, cost, strict=True))
        if m > n
    ]
    if not growth:
        return
    place = int(np.argmax(growth))
    usual = float(np.median([g for i, g in enumerate(growth) if i != place])) if len(growth) > 1 else 0.0
    crosses = bool(nodes[place + 1] > nodes[place]) if not np.isnan(nodes).any() else False
    if len(growth) + 1 < LEAST_SIZES and not crosses:
        return  # two sizes have no trend that one of them could leave
    if growth[place] >= STEP_JUMP and growth[place] > TIMES_TREND * max(usual, 0.01):
        yield Fact(
            fabric.SCALING_BOUNDARY,
            float(ranks[place + 1]),
            source,
            samples=len(rate),
            note="node border" if crosses else "",
        )
        yield Fact(fabric.SCALING_JUMP, float(cost[place + 1] / cost[place]), source)
        listed = ", ".join(f"{r:g} at {int(n)}" for n, r in zip(ranks, rate, strict=True))
        yield Fact(fabric.SCALING_BEFORE, f"per GPU {listed}", source)
        advice = "overlap of the exchange with backward, larger buckets, or a hierarchical all-reduce that crosses the border once"
        yield Fact(fabric.SCALING_ADVICE, advice, source)
    elif efficiency < GOOD:
        yield Fact(fabric.SCALING_SMOOTH, 1.0, source, samples=len(rate))


def _bandwidths(evidence: Evidence) -> Iterator[Fact]:
    """nccl-tests of the same message at several sizes of group."""
    best: dict[int, tuple[float, float, Source]] = {}
    for table in evidence.table("collective.bandwidth"):
        size, time = table.columns["size_bytes"], table.columns["time_s"]
        if table.meta.get("ranks", 0) >= 2 and len(size):
            best[int(table.meta["ranks"])] = float(size[-1]), float(time[-1]), table.source
    if len(best) >= 3 and len({s for s, _, _ in best.values()}) == 1:
        ranks = np.array(sorted(best), dtype=float)
        yield from _times(ranks, np.array([best[int(n)][1] for n in ranks]), best[int(ranks[0])][2])


def _exchanges(evidence: Evidence) -> Iterator[Fact]:
    """Logs of the same training on groups of several sizes, each with the time of its own gradient exchange."""
    timed: dict[float, tuple[float, Source]] = {}
    for source, stated_run in _stated_runs(evidence):
        if stated_run.get("exchange_s", 0.0) > 0 and stated_run["gpus"] >= 2:
            timed[stated_run["gpus"]] = stated_run["exchange_s"], source
    if len(timed) >= LEAST_SIZES:
        ranks = np.array(sorted(timed))
        yield from _times(ranks, np.array([timed[n][0] for n in ranks]), timed[ranks[0]][1])


def _stated_runs(evidence: Evidence) -> list[tuple[Source, dict[str, float]]]:
    """What each file says of its run: how many cards, how long, and with which settings."""
    found: dict[str, dict[str, float]] = {}
    for name, quantities in RUN_QUANTITIES.items():
        for fact in (f for quantity in quantities for f in evidence.all(quantity) if f.scope == WHOLE):
            found.setdefault(fact.source.file, {}).setdefault(name, fact.number)
    timed = (
        (file, stated_run)
        for file, stated_run in found.items()
        if stated_run.get("gpus") and stated_run.keys() & {"step_s", "runtime_s"}
    )
    unknown = {"step_s": np.nan, "runtime_s": np.nan, "p2p_off": 0.0, "data_parallel": 0.0}
    return [(Source(file), {**unknown, **stated_run}) for file, stated_run in timed]


def _runs(evidence: Evidence) -> Iterator[Fact]:
    """The same training on fewer and on more GPUs, and with peer-to-peer off and on."""
    rows = _stated_runs(evidence)
    few = [r for r in rows if r[1]["gpus"] == min((x[1]["gpus"] for x in rows), default=0)]
    many = [r for r in rows if few and r[1]["gpus"] > few[0][1]["gpus"] and not r[1]["data_parallel"]]
    if few and many:
        a, b = few[0][1], max(many, key=lambda r: (not r[1]["p2p_off"], r[1]["gpus"]))[1]
        slowdown = b["step_s"] / a["step_s"]
        if slowdown != slowdown:  # same work in all: it should take a share of the time
            slowdown = b["runtime_s"] * b["gpus"] / (a["runtime_s"] * a["gpus"])
        if slowdown >= SLOWER_RUN:
            yield Fact(
                fabric.RUN_SLOWDOWN,
                slowdown,
                many[0][0],
                samples=len(rows),
                note=f"{a['gpus']:g} to {b['gpus']:g} GPUs",
            )
    off = [r for r in rows if r[1]["p2p_off"]]
    on = [r for r in many if not r[1]["p2p_off"] and off and r[1]["gpus"] == off[0][1]["gpus"]]
    if off and on:
        key = "runtime_s" if off[0][1]["runtime_s"] == off[0][1]["runtime_s"] else "step_s"
        ratio = off[0][1][key] / on[0][1][key]
        if ratio == ratio and ratio > JUMP_RATIO / 1.4:
            yield Fact(fabric.P2P_OFF_SLOWDOWN, ratio, off[0][0])
