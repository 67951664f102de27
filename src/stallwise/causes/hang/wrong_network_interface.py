"""Nodes offer each other an address that cannot be reached: loopback, a container bridge, or another subnet.

## What it means
NCCL (or gloo) picks an interface for bootstrap and sockets. On machines with loopback, docker bridges or several
networks it may pick, or be told to pick, one whose address means nothing on the other node.

## Why it costs
The job never starts, or hangs in its first collective.

## What else looks so
A firewall between the right interfaces. A wrong master address. Mixed NCCL versions garble addresses too.

## Fix
Name the routed interface: NCCL_SOCKET_IFNAME and GLOO_SOCKET_IFNAME (an exclusion such as ^docker0 makes loopback
eligible: exclude lo too, or name the one wanted). In containers use the host's network or a routed overlay.

## How the gain is found
Not in seconds: the job starts.
"""

from __future__ import annotations

from stallwise.doctor.findings.clue import Clue
from stallwise.doctor.findings.finding import Finding, Fix, Reason
from stallwise.doctor.findings.rule import rule
from stallwise.evidence.capture import NCCL_LOG
from stallwise.evidence.catalog.fabric import FABRIC_NODES, NCCL_ENV, NCCL_INTERFACE
from stallwise.evidence.catalog.hang import (
    HANG_NEVER_WORKED,
    HANG_TIMEOUT,
    INTERFACE_ERROR,
    STALLED_TENSORS,
    UNREACHABLE_ADDRESS,
)
from stallwise.evidence.evidence import Evidence

CLUES = (
    Clue((INTERFACE_ERROR,), lambda e: True, "strong when seen", "an address could not be bound or reached"),
    Clue((UNREACHABLE_ADDRESS,), lambda e: True, "fair when seen", "nodes use an address that others cannot reach"),
)


@rule()
def wrong_network_interface(evidence: Evidence) -> Finding | None:
    """A connection that fails, or a hang over an address that other nodes cannot reach."""
    errors, bad = evidence.all(INTERFACE_ERROR), evidence.all(UNREACHABLE_ADDRESS)
    loop = [f for f in bad if f.note == "loopback"]
    stuck = [f for q in (STALLED_TENSORS, HANG_NEVER_WORKED, HANG_TIMEOUT) for f in evidence.all(q)]
    if not errors and not (loop and stuck):
        return None
    because = [Reason.of(str(f.value), f) for f in errors[:2]]
    because += [Reason.of(f"{f.scope.node or 'a node'} uses {f.value}, a {f.note} address", f) for f in bad[:3]]
    settings = [f for f in evidence.all(NCCL_ENV) if "SOCKET_IFNAME" in str(f.value) or "COMM_ID" in str(f.value)]
    because += [Reason.of(f"setting {f.value}", f) for f in settings[:2]]
    if not loop and not bad:
        because += [
            Reason.of(f"{f.scope.node or 'a node'} uses {f.value}", f) for f in evidence.all(NCCL_INTERFACE)[:2]
        ]
    nodes = evidence.value(FABRIC_NODES, 0.0)
    return Finding(
        headline=f"Nodes try to reach each other over {bad[0].value}"
        if bad
        else "Nodes cannot reach each other on the chosen interface",
        confidence=0.95 if errors and bad else 0.88 if errors else 0.85 if nodes > 1 else 0.7,
        because=tuple(because),
        fixes=(
            Fix(
                "Name the routed interface on every node: NCCL_SOCKET_IFNAME=eth0 GLOO_SOCKET_IFNAME=eth0.",
                worth="the job starts",
                cost="a setting",
            ),
            Fix(
                "In containers use --network host, or an overlay that routes between nodes.",
                worth="the job starts",
                cost="a restart",
            ),
        ),
        avoid="Do not raise the timeout, and do not exclude single interfaces: that makes loopback eligible.",
        next=(NCCL_LOG,),
        explains=("network-fallback-socket", "transport-never-worked", "rank-died-first", "collective-mismatch"),
        blocking=True,
    )
