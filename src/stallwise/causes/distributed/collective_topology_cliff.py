"""Collectives jump at one size of the group: from there on they cross a slower link.

## What it means
A ring moves 2(n-1)/n of the message whatever n is, so its time hardly grows with the ranks. A jump at one size means
that the group now crosses a border: of the NVLink domain, the node, the rack, the pod, or a narrower level of the
network.

## Why it costs
The slowest segment sets the pace of the whole ring, and every step pays it.

## What else looks so
Smooth growth with the ranks is latency of many steps. One late rank makes single runs slow, not one size. A fallback
to sockets or a missing adapter on the added nodes looks like a border too: check the transports.

## Fix
An algorithm that crosses the border once: hierarchical reduction, or trees where latency is the limit; placement that
keeps neighbours of the ring together; then overlap; then exchanging less often.

## How the gain is found
Time at the border against the trend of the sizes below it, fitted by latency per step plus wire time.
"""

from __future__ import annotations

from stallwise.doctor.findings.clue import Clue, above, says_one_of, yes
from stallwise.doctor.findings.finding import Finding, Fix, Gain, Reason
from stallwise.doctor.findings.rule import rule
from stallwise.evidence.capture import NCCL_LOG, NCCL_TESTS, TOPOLOGY
from stallwise.evidence.catalog import expected, stated
from stallwise.evidence.catalog.fabric import (
    SCALING_ADVICE,
    SCALING_BEFORE,
    SCALING_BOUNDARY,
    SCALING_EFFICIENCY,
    SCALING_EXCESS,
    SCALING_JUMP,
)
from stallwise.evidence.evidence import Evidence
from stallwise.units import Unit, show

SURE_JUMP = 2.0  # times the trend: no run-to-run noise does that
TREND = 4  # sizes: of three, two make a trend that one of them alone may bend


@rule(SCALING_BOUNDARY)
def collective_topology_cliff(evidence: Evidence) -> Finding | None:
    """A scaling series that leaves its own trend at one size."""
    boundary, jump = evidence.get(SCALING_BOUNDARY), evidence.get(SCALING_JUMP)
    if boundary is None or jump is None:
        return None
    excess, series, advice = evidence.get(SCALING_EXCESS), evidence.get(SCALING_BEFORE), evidence.get(SCALING_ADVICE)
    efficiency = evidence.get(SCALING_EFFICIENCY)
    because = [Reason.of(f"{series.value}", series)] if series else []
    because.append(Reason.of(f"{jump.number:.3g}x the trend from {boundary} ranks on", jump, boundary))
    if boundary.note:
        because.append(Reason.of(f"that is where the group leaves the node ({boundary.note})", boundary))
    if efficiency:
        because.append(Reason.of(f"efficiency at the largest size {efficiency}", efficiency))
    gain = Gain(0.5 * excess.number, excess.number, "back to the trend of the smaller sizes") if excess else None
    return Finding(
        headline=f"Scaling breaks at {boundary} ranks: the group crosses a slower link there",
        confidence=0.92 if jump.number >= SURE_JUMP or boundary.note else 0.8 if boundary.samples >= TREND else 0.45,
        because=tuple(because),
        gain=gain,
        fixes=(
            Fix(
                f"Use {advice.value if advice else 'a hierarchical algorithm'}.",
                gain,
                cost="a setting or library option, and a test at that size",
            ),
            Fix(
                "Place the ranks so that ring neighbours share a rack or pod; check the added nodes' transports.",
                worth="fewer flows cross the border",
                cost="scheduler placement",
            ),
            Fix(
                "Overlap with backward, then exchange less often.",
                worth="hides what is left",
                cost="memory, or a larger batch",
            ),
        ),
        avoid="Do not shard more (ZeRO, FSDP): it sends as much or more across the same link.",
        next=(NCCL_TESTS, TOPOLOGY, NCCL_LOG),
        explains=("exposed-communication",),
    )


# A collective that jumps at one scale, while only suspected.
NODE_GPUS = 8


def _slower_across(evidence: Evidence) -> bool | None:
    across, within = evidence.value(stated.CROSS_POD_BANDWIDTH), evidence.value(stated.IN_POD_BANDWIDTH)
    return across < 0.6 * within if across == across and within == within else None


def _over_the_boundary(evidence: Evidence) -> bool | None:
    pod, cliff = evidence.value(stated.POD_GPUS), evidence.value(expected.CLIFF_GPUS)
    return pod < cliff <= 2 * pod + 1 if pod == pod and cliff == cliff else None


CLUES = (
    above(stated.GPUS, NODE_GPUS, "hint", "more GPUs than one node holds: there are borders to cross", "all GPUs are in one node"),
    above(expected.CLIFF_RATIO, 1.8, "fair, needed", "the time leaves the trend of all smaller scales at once", "the time follows its trend"),
    Clue((stated.POD_GPUS, expected.CLIFF_GPUS), _over_the_boundary, "fair",
         "the jump falls on the border of a pod", "the jump is not at a border of the topology"),
    Clue((stated.CROSS_POD_BANDWIDTH, stated.IN_POD_BANDWIDTH), _slower_across, "strong, needed",
         "links across the border are much slower", "links across the border are as fast as inside"),
    says_one_of(stated.COLLECTIVE_ALGORITHM, ("ring",), "hint when seen", "a flat ring: its slowest segment sets the pace", "not a flat ring"),
    yes(stated.STRAGGLERS, "against", "some ranks lag", "no rank lags"),
    above(stated.SLOW_RANK_RATIO, 1.1, "against", "one rank is late", "all ranks arrive together"),
)  # fmt: skip


def advise(evidence: Evidence) -> Finding:
    """Another algorithm first, overlap second, less often third."""
    trend, at, factor, narrower = (
        evidence.get(q) for q in (expected.RING_TIME, expected.CLIFF_GPUS, expected.RING_FACTOR, expected.NARROWER)
    )
    series = next(iter(evidence.series(stated.ALLREDUCE_TIME)), None)
    seen = float(series.values.max()) if series is not None else evidence.value(stated.ALLREDUCE_TIME)
    excess = seen - trend.number if trend else float("nan")
    because = []
    if trend and at and factor and seen == seen:
        because = [
            Reason(f"a ring sends 2(N-1)/N of the message: the last doubling may cost {factor.number - 1:.1%} more, not {seen / trend.number:.1f}x"),
            Reason(f"the trend below gives {trend} at {at} GPUs, measured {show(seen, Unit.SECOND)}: {show(excess, Unit.SECOND)} come from a slower segment"),
        ]  # fmt: skip
    if narrower:
        because.append(
            Reason(
                f"were it bandwidth alone, that segment would have 1/{narrower.number:.1f} of the others' (latency set aside)"
            )
        )
    gain = Gain(0.6 * excess, excess, "back to the trend of the smaller scales") if excess > 0 else None
    half = Gain(0.3 * seen, 0.7 * seen, "hidden behind backward, if that lasts as long") if seen == seen else None
    return Finding(
        headline=f"The collective crosses a slower link{f' at {at} GPUs' if at else ''}: a topology border, not more data.",
        confidence=0.0,
        because=tuple(because),
        summary="Ring time hardly depends on the number of ranks; a jump at one scale is a link, a fallback or a switch layer.",
        fixes=(
            Fix("Go hierarchical: reduce inside the node over NVLink, then across nodes; or tree algorithms (NCCL_ALGO=Tree, or leave NCCL to choose)", gain,
                worth="back to the trend of the smaller scales",
                cost="a setting, and a test at scale", risk="tree moves load to few ranks in small messages"),
            Fix("Double binary trees and rail-aligned placement, so that few flows cross the border", gain,
                worth="fewer flows over the slow border",
                cost="scheduler placement", risk="fragments the cluster"),
            Fix("Overlap the exchange with backward; check the bucket size", half, worth="as much as backward can hide", cost="memory for buckets in flight", risk="slows the kernels it overlaps a little"),
            Fix("Exchange less often: gradient accumulation", worth="divides the remaining time by the number of accumulated steps",
                cost="larger global batch", risk="convergence"),
        ),
        avoid="ZeRO or FSDP: they change what is stored where, not how a collective crosses the slow link; they send more, not less.",
        next=(NCCL_TESTS, TOPOLOGY, NCCL_LOG),
    )  # fmt: skip
