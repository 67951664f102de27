"""Traffic between nodes goes over TCP sockets where RDMA was there to be used, or should be.

## What it means
NCCL found no usable RDMA device (missing library, missing device nodes in the container, a plugin that bound the tcp
provider) and fell back to sockets. It works, at a fraction of the speed, and burns CPU cores.

## Why it costs
One TCP stream gives 1 to 3 GB/s, several perhaps 10; a 400 Gb/s adapter with RDMA gives 45 to 48 GB/s. All collectives
that cross nodes slow by that factor.

## What else looks so
On a single node "Using network Socket" is printed too and means nothing: nothing leaves the node. On a cluster with
plain Ethernet sockets are all there is; then less traffic is the cure.

## Fix
Make RDMA visible to the process: libibverbs in the image, /dev/infiniband mounted, the right libfabric provider
(efa, cxi, verbs instead of tcp), the network plugin of the cloud. Check for "NET/IB" or the provider's name in the log.

## How the gain is found
Bandwidth of the adapter over that of sockets, for the part of the step that waits for cross-node traffic.
"""

from __future__ import annotations

from stallwise.doctor.findings.clue import Clue, yes
from stallwise.doctor.findings.finding import Finding, Fix, Reason
from stallwise.doctor.findings.rule import rule
from stallwise.evidence.capture import NCCL_LOG, NCCL_TESTS
from stallwise.evidence.catalog.fabric import (
    CROSS_NODE_VIA,
    FABRIC_NODES,
    NCCL_ENV,
    NCCL_INTERFACE,
    NCCL_NET,
    NCCL_PROVIDER,
    NCCL_RDMA_ABSENT,
    NCCL_SHARE_ACROSS,
    ONE_NODE,
)
from stallwise.evidence.evidence import Evidence
from stallwise.evidence.fact import Fact

SLOW_PROVIDERS = ("tcp", "sockets", "udp", "tcp;ofi_rxm")
RDMA_PORTS = ("ib", "hsn", "mlx", "roce", "rdma", "efa", "hfi")  # names of interfaces that stand on an RDMA adapter
CLUES = (
    yes(ONE_NODE, "forbids", "every rank is on one node: nothing goes over a network"),
    Clue(
        (NCCL_NET, FABRIC_NODES),
        lambda e: e.text(NCCL_NET) == "Socket" and e.value(FABRIC_NODES) > 1,
        "strong, needed",
        "NCCL uses sockets between nodes",
        "NCCL does not use sockets between nodes",
    ),
    Clue(
        (NCCL_SHARE_ACROSS,),
        lambda e: e.value(NCCL_SHARE_ACROSS) < 0.3,
        "fair",
        "collectives between nodes are far below the network's rate",
        "collectives between nodes reach the network's rate",
    ),
)


@rule(NCCL_NET)
def network_fallback_socket(evidence: Evidence) -> Finding | None:
    """Sockets, or a tcp provider, between more than one node."""
    if plugin := _ignored_setting(evidence):
        return plugin
    if evidence.value(FABRIC_NODES, 0.0) < 2:
        return None
    sockets = [f for f in evidence.all(NCCL_NET) if str(f.value).lower() == "socket"]
    slow = [f for f in evidence.all(NCCL_PROVIDER) if str(f.value).lower() in SLOW_PROVIDERS]
    others = [f for f in evidence.all(CROSS_NODE_VIA) if "Socket" not in str(f.value)]
    if not slow and (not sockets or others):
        return None
    first = (slow or sockets)[0]
    crossing = [f for f in evidence.all(CROSS_NODE_VIA) if "Socket" in str(f.value)]
    absent, ports = evidence.all(NCCL_RDMA_ABSENT), _ports(evidence)
    because = [Reason.of(f"the provider is {first.value}" if slow else "NCCL uses the network Socket", first)]
    because += [Reason.of(f"{f.samples} connections between nodes go via {f.value}", f) for f in crossing[:1]]
    because += [Reason.of(f"why: {f.value}", f) for f in absent[:1]]
    because += [Reason.of(f"and yet the interface is {f.value}: an RDMA adapter is there", f) for f in ports[:1]]
    disabled = [f for f in evidence.all(NCCL_ENV) if str(f.value) == "NCCL_IB_DISABLE=1"]
    because += [Reason.of("NCCL_IB_DISABLE=1 switches RDMA off", f) for f in disabled[:1]]
    certain = bool(slow or ports or disabled)
    return Finding(
        headline=f"Nodes talk over TCP ({first.value}) instead of RDMA",
        confidence=0.95 if certain and (crossing or slow) else 0.88 if crossing else 0.75,
        because=tuple(because),
        fixes=_fixes(bool(slow), bool(disabled)),
        avoid="Do not tune buckets or overlap first: the wire is 5 to 20 times slower than it could be.",
        next=(NCCL_TESTS, NCCL_LOG),
        explains=("exposed-communication", "gdr-disabled", "tp-crosses-nodes"),
    )


def _ignored_setting(evidence: Evidence) -> Finding | None:
    """RDMA switched off by a setting that the network plugin in use does not obey."""
    off = [f for f in evidence.all(NCCL_ENV) if str(f.value) == "NCCL_IB_DISABLE=1"]
    chosen = [f for f in evidence.all(NCCL_NET) if str(f.value) not in ("Socket", "IB")]
    if not off or not chosen:
        return None
    return Finding(
        headline=f"The network plugin {chosen[0].value} ignores NCCL_IB_DISABLE=1",
        confidence=0.8,
        because=(
            Reason.of("NCCL_IB_DISABLE=1 asks for sockets", off[0]),
            Reason.of(f"a plugin is loaded and chosen instead of NCCL's own networks: {chosen[0].value}", chosen[0]),
        ),
        fixes=(
            Fix(
                "Keep the plugin out: NCCL_NET_PLUGIN=none, or remove its folder from LD_LIBRARY_PATH; or NCCL_NET=Socket.",
                worth="the setting takes effect",
                cost="a setting",
            ),
            Fix("Or cable and configure the adapters the plugin finds.", worth="RDMA", cost="network work"),
        ),
        avoid="Do not add more NCCL_IB settings: the plugin has its own.",
        next=(NCCL_LOG,),
    )


def _ports(evidence: Evidence) -> list[Fact]:
    return [f for f in evidence.all(NCCL_INTERFACE) if str(f.value).lower().startswith(RDMA_PORTS)]


def _fixes(provider: bool, disabled: bool) -> tuple[Fix, ...]:
    visible = Fix(
        "Make RDMA visible to the process: libibverbs in the image, /dev/infiniband mounted, the cloud's network plugin.",
        worth="5 to 20x the bandwidth between nodes",
        cost="a new image or a mount",
    )
    choose = Fix(
        "Bind the right libfabric provider: FI_PROVIDER=efa, cxi or verbs.", worth="5 to 20x", cost="a setting"
    )
    allow = Fix("Remove NCCL_IB_DISABLE=1.", worth="RDMA is used again", cost="a setting")
    less = Fix(
        "Where there is no RDMA: accumulate gradients, larger buckets, more socket threads (NCCL_SOCKET_NTHREADS).",
        worth="fewer bytes wait",
        cost="convergence to be checked",
    )
    return ((choose,) if provider else (allow,) if disabled else ()) + (visible, less)
