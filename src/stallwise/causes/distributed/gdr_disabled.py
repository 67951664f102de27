"""RDMA traffic bounces through host memory: GPUDirect RDMA is off.

## What it means
The adapter could read and write GPU memory itself, but the kernel module for it (nvidia-peermem, or dma-buf support) is
missing, or the GPU and the adapter are too far apart on PCIe. Every byte is copied to host memory and from there.

## Why it costs
Twice the PCIe traffic and host-memory bandwidth, and more latency: often half the bandwidth between nodes.

## What else looks so
Adapters far from a GPU are left out on purpose; connections that matter then still show GDRDMA. Sockets never have it.

## Fix
Load nvidia-peermem (or use a driver and kernel with dma-buf), switch off ACS on the bridges between GPU and adapter,
raise NCCL_NET_GDR_LEVEL if the path allows. Check for "/GDRDMA" in the connection lines.

## How the gain is found
Bus bandwidth with and without, for the part of the step that waits for cross-node traffic.
"""

from __future__ import annotations

from stallwise.doctor.findings.clue import Clue, yes
from stallwise.doctor.findings.finding import Finding, Fix, Reason
from stallwise.doctor.findings.rule import rule
from stallwise.evidence.capture import NCCL_TESTS, TOPOLOGY, Capture
from stallwise.evidence.catalog.fabric import (
    CROSS_NODE_GDR_SHARE,
    CROSS_NODE_VIA,
    FABRIC_NODES,
    NCCL_ENV,
    NCCL_GDR_OFF,
    NCCL_SHARE_ACROSS,
    ONE_NODE,
)
from stallwise.evidence.catalog.hang import ACS_ENABLED
from stallwise.evidence.evidence import Evidence

FEW = 0.1  # of the RDMA connections with GPUDirect
SEVERAL = 2  # connections: of one line that somebody quotes the end may be missing
CLUES = (
    yes(ONE_NODE, "forbids", "every rank is on one node: nothing goes over a network"),
    Clue(
        (CROSS_NODE_GDR_SHARE,),
        lambda e: e.value(CROSS_NODE_GDR_SHARE) <= FEW,
        "decisive, needed",
        "RDMA connections lack GPUDirect",
        "RDMA connections use GPUDirect",
    ),
    Clue(
        (NCCL_SHARE_ACROSS,),
        lambda e: e.value(NCCL_SHARE_ACROSS) < 0.6,
        "fair",
        "collectives between nodes are below the network's rate",
        "collectives between nodes reach the network's rate",
    ),
)
MODULE = Capture(
    "whether the module is loaded", "lsmod | grep -E 'nvidia_peermem|nv_peer_mem'; nvidia-smi topo -m", "free"
)


@rule(CROSS_NODE_GDR_SHARE)
def gdr_disabled(evidence: Evidence) -> Finding | None:
    """RDMA connections between nodes without GDRDMA."""
    share = evidence.get(CROSS_NODE_GDR_SHARE)
    if share is None or share.number > FEW or evidence.value(FABRIC_NODES, 0.0) < 2:
        return None
    disabled = evidence.all(NCCL_GDR_OFF)
    acs = [f for f in evidence.all(ACS_ENABLED) if f.number > 0]
    off = [f for f in evidence.all(NCCL_ENV) if str(f.value) in ("NCCL_NET_GDR_LEVEL=0", "NCCL_NET_GDR_LEVEL=LOC")]
    via = [f for f in evidence.all(CROSS_NODE_VIA) if "Socket" not in str(f.value)]
    because = [
        Reason.of(f"{share.samples} RDMA connections ({via[0].value if via else 'NET'}), none with GDRDMA", share)
    ]
    because += [Reason.of(f"NCCL says it is off for {f.value}", f) for f in disabled[:1]]
    because += [Reason.of(f"{f} bridges redirect peer traffic (ACS)", f) for f in acs[:1]]
    because += [Reason.of(f"setting {f.value}", f) for f in off[:1]]
    return Finding(
        headline="RDMA between nodes bounces through host memory: GPUDirect is off",
        confidence=0.93 if disabled or off else 0.8 if share.samples >= SEVERAL else 0.45,
        because=tuple(because),
        fixes=(
            Fix(
                "Load nvidia-peermem (or a driver and kernel with dma-buf) on every node.",
                worth="up to 2x bandwidth between nodes",
                cost="a module; root",
            ),
            Fix(
                "Switch off ACS between GPU and adapter; check that both hang under one PCIe switch.",
                worth="the direct path",
                cost="a firmware setting",
                risk="weakens isolation of virtual machines",
            ),
        ),
        avoid="Do not blame the switch or the adapter's speed: the detour is inside the node.",
        next=(MODULE, NCCL_TESTS, TOPOLOGY),
        explains=("exposed-communication",),
    )
