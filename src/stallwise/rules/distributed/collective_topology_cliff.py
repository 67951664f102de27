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

from stallwise.evidence.capture import NCCL_LOG, NCCL_TESTS, TOPOLOGY
from stallwise.evidence.catalog.fabric import (
    SCALING_ADVICE,
    SCALING_BEFORE,
    SCALING_BORDER,
    SCALING_EFFICIENCY,
    SCALING_EXCESS,
    SCALING_JUMP,
)
from stallwise.evidence.evidence import Evidence
from stallwise.findings.finding import Finding, Fix, Gain, Reason
from stallwise.findings.rule import rule

SURE_JUMP = 2.0  # times the trend: no run-to-run noise does that
TREND = 4  # sizes: of three, two make a trend that one of them alone may bend


@rule(SCALING_BORDER)
def collective_topology_cliff(evidence: Evidence) -> Finding | None:
    """A scaling series that leaves its own trend at one size."""
    border, jump = evidence.get(SCALING_BORDER), evidence.get(SCALING_JUMP)
    if border is None or jump is None:
        return None
    excess, series, advice = evidence.get(SCALING_EXCESS), evidence.get(SCALING_BEFORE), evidence.get(SCALING_ADVICE)
    efficiency = evidence.get(SCALING_EFFICIENCY)
    because = [Reason.of(f"{series.value}", series)] if series else []
    because.append(Reason.of(f"{jump.number:.1f}x the trend from {border} ranks on", jump, border))
    if border.note:
        because.append(Reason.of(f"that is where the group leaves the node ({border.note})", border))
    if efficiency:
        because.append(Reason.of(f"efficiency at the largest size {efficiency}", efficiency))
    gain = Gain(0.5 * excess.number, excess.number, "back to the trend of the smaller sizes") if excess else None
    return Finding(
        headline=f"Scaling breaks at {border} ranks: the group crosses a slower link there",
        confidence=0.92 if jump.number >= SURE_JUMP or border.note else 0.8 if border.samples >= TREND else 0.45,
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
