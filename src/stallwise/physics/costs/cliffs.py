"""Where a collective stops scaling, and what a measured jump can and cannot be.

A ring's time grows by two steps of latency per rank and not at all in bandwidth: 2(n-1)/n tends to 2. So a jump between
two sizes of group needs another cause: a slower kind of link, a narrower level of the network, another algorithm.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import inf

from stallwise.errors import BadRequest
from stallwise.physics.costs.collectives import Estimate, Op, collective_time
from stallwise.physics.costs.topology import Fabric

MOST_RANKS = 10**9  # of a group: beyond, the number is damage
JUMP_RATIO = 1.5  # doubling a group costs at most a few percent in bandwidth, and 2x only where all is latency
LONGEST_STEP_S = 100e-6  # a network step of the slowest protocol takes 14 us in NCCL's tuner; 100 is a broken fabric


@dataclass(frozen=True, slots=True)
class Cliff:
    """Between `below` and `above` ranks the time jumps."""

    below: int
    above: int
    ratio: float
    reason: str


def group_sizes(gpus: int) -> tuple[int, ...]:
    """Powers of two up to a group's size, and the size itself."""
    sizes = []
    n = 2
    while n < gpus:
        sizes.append(n)
        n *= 2
    return (*sizes, gpus) if gpus > 1 else (gpus,)


def expected_cliffs(op: Op | str, size_bytes: float, gpus: int, fabric: Fabric) -> tuple[Cliff, ...]:
    """Where doubling the group costs more than half as much again, and why."""
    sizes = group_sizes(gpus)
    found: list[Cliff] = []
    times = [(n, collective_time(op, size_bytes, n, fabric)) for n in sizes]
    for (n, before), (m, after) in pairwise(times):
        ratio = after.seconds / before.seconds if before.seconds else inf
        if ratio >= JUMP_RATIO:
            found.append(Cliff(n, m, ratio, _reason(n, m, before, after, fabric)))
    return tuple(found)


def _reason(n: int, m: int, before: Estimate, after: Estimate, fabric: Fabric) -> str:
    if n <= fabric.gpus_per_domain < m:
        return f"leaves the NVLink domain of {fabric.gpus_per_domain}"
    for level in fabric.levels:
        if n <= level.gpus < m:
            return f"crosses the {level.name} of {level.gpus} (oversubscribed {level.oversubscription_ratio:g}:1)"
    if after.limit == "latency":
        return "latency: the message is too small for so many steps"
    if before.algorithm != after.algorithm:
        return f"changes from {before.algorithm} to {after.algorithm}"
    return f"limited by the {after.limit}"


@dataclass(frozen=True, slots=True)
class JumpVerdict:
    """What a measured series over group sizes says."""

    below: int
    above: int
    ratio: float
    expected_s: float  # what the trend before the jump predicts after it
    step_latency_s: float  # per ring step, from the trend before the jump
    needed_step_latency_s: float  # what each of the new steps would have to take if latency were the cause
    latency_possible: bool
    narrower_ratio: float  # how much less bandwidth after the jump would explain it


def explain_jump(points: Sequence[tuple[int, float]]) -> JumpVerdict | None:
    """Reads (ranks, seconds) of the same message: the largest jump, and whether latency could be its cause."""
    series = sorted(dict(points).items())
    if len(series) < 3 or any(not 2 <= n <= MOST_RANKS or not 0 < s < float("inf") for n, s in series):
        raise BadRequest("a scaling series needs three group sizes with times above zero", hint="64=45ms 128=52ms ...")
    ratios = [b[1] / a[1] for a, b in pairwise(series)]
    place = max(range(len(ratios)), key=ratios.__getitem__)
    if ratios[place] < JUMP_RATIO:
        return None
    (below, below_s), (above, above_s) = series[place], series[place + 1]
    first, first_s = series[0]
    # Before the jump: time = wire + 2 (n-1) x step, the wire part nearly constant.
    step_s = max(0.0, (below_s - first_s) / (2 * (below - first))) if below > first else 0.0
    wire_s = max(below_s - 2 * (below - 1) * step_s, 0.0)
    expected_s = below_s + 2 * (above - below) * step_s
    needed = (above_s - below_s) / (2 * (above - below))
    excess = above_s - expected_s
    return JumpVerdict(
        below=below,
        above=above,
        ratio=ratios[place],
        expected_s=expected_s,
        step_latency_s=step_s,
        needed_step_latency_s=needed,
        latency_possible=needed <= LONGEST_STEP_S,
        narrower_ratio=(wire_s + excess) / wire_s if wire_s > 0 else inf,
    )
