"""Topology and transports: how many nodes, what leaves them over which network, what joins GPUs inside."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from stallwise.evidence.catalog import fabric, hang
from stallwise.evidence.evidence import Evidence, Item
from stallwise.evidence.fact import Fact, Source

ORDER = -8
LOOPBACK = re.compile(r"^lo[:\d]*:|:127\.|^lo:?$|:::1$")
BRIDGE = re.compile(
    r"^(?:docker\d*|br-\w+|virbr\d*|lxc\w*|cni\d*|veth\w*|vmnet\d*|vboxnet\d*|podman\d*)(?::|$)|:172\.1[789]\.\d+\.\d+$|:fe80:",
    re.IGNORECASE,
)

NO_COUNT = 2**63  # numbers beyond any counter, or none at all, count no ranks


def from_evidence(evidence: Evidence) -> Iterator[Item]:
    """Facts about the fabric as a whole."""
    hosts = {
        str(f.scope.node)
        for q in (fabric.NCCL_NET, fabric.NCCL_INTERFACE, fabric.NCCL_VERSION)
        for f in evidence.all(q)
        if f.scope.node
    }
    for table in evidence.table("nccl.ranks"):
        hosts |= {str(h) for h in table.columns["host"]}
    listed_ranks = (n for t in evidence.table("nccl.ranks") for n in t.columns["ranks"])
    ranks = max((int(n) for n in listed_ranks if n < NO_COUNT), default=0)
    linked = [max(t.columns["sender"].max(), t.columns["receiver"].max()) for t in evidence.table("nccl.channels")]
    ranks = max([ranks, *(int(n) + 1 for n in linked if n < NO_COUNT)])
    if ranks:
        source = [*evidence.table("nccl.ranks"), *evidence.table("nccl.channels")][0].source
        yield Fact(fabric.FABRIC_RANKS, float(ranks), source)
    yield from _channels(evidence)
    yield from _paths(evidence)
    nodes = _nodes(evidence, hosts, ranks)
    if nodes:
        seen = [*evidence.table("nccl.ranks"), *evidence.table("nccl.channels")]
        yield Fact(fabric.FABRIC_NODES, float(nodes), seen[0].source if seen else Source("logs"))
        yield from _alone(evidence, hosts, ranks, nodes)
    yield from _addresses(evidence, nodes)


def _alone(evidence: Evidence, hosts: set[str], ranks: int, nodes: int) -> Iterator[Fact]:
    """Said only where every rank was seen, or the job itself says how many nodes it has: one log of many shows one host too."""
    seen = {int(r) for t in evidence.table("nccl.ranks") for r in t.columns["rank"]}
    stated = [f for f in evidence.all(fabric.NODES) if f.number == 1]
    tables = evidence.table("nccl.ranks")
    if nodes == 1 and ((tables and len(hosts) == 1 and len(seen) >= ranks > 0) or stated):
        yield Fact(fabric.ONE_NODE, 1.0, tables[0].source if tables else stated[0].source)


def _nodes(evidence: Evidence, hosts: set[str], ranks: int) -> int:
    stated = max((int(f.number) for f in evidence.all(fabric.NODES)), default=0)
    tested = (t.meta.get("nodes", 0) for t in evidence.table("collective.bandwidth"))
    stated = max([stated, *(int(n) for n in tested if isinstance(n, int | float))])
    placed = {
        (str(h), int(r))
        for t in evidence.table("nccl.ranks")
        for h, r in zip(t.columns["host"], t.columns["rank"], strict=True)
    }
    if placed and len({r for _, r in placed}) >= ranks:  # every rank was seen, so every node was
        return max(len(hosts), stated)
    crossing = _crosses(evidence) and not _local_net(evidence)
    return max(len(hosts), stated, 2 if crossing else 0)


def _crosses(evidence: Evidence) -> bool:
    return any(str(v).startswith("NET/") for t in evidence.table("nccl.channels") for v in t.columns["via"])


def _local_net(evidence: Evidence) -> bool:
    """NET inside one node is what switching off P2P and shared memory leaves."""
    settings = {str(f.value) for f in evidence.all(fabric.NCCL_ENV)}
    return {"NCCL_P2P_DISABLE=1", "NCCL_SHM_DISABLE=1"} <= settings


def _channels(evidence: Evidence) -> Iterator[Fact]:
    outside: Counter[str] = Counter()
    inside: Counter[str] = Counter()
    gdr = rdma = 0
    first: dict[str, Source] = {}
    for table in evidence.table("nccl.channels"):
        c = table.columns
        for via, count, line in zip(c["via"], c["count"], c["line"], strict=True):
            text = str(via)
            kind = "/".join(text.split("/")[:2]) if text.startswith("NET/") else text.split("/")[0]
            kind = "SHM" if kind.startswith("direct shared memory") else kind
            target = outside if kind.startswith("NET/") else inside
            target[kind] += int(count)
            first.setdefault(kind, Source(table.source.file, f"line {int(line)}"))
            if kind.startswith("NET/") and "Socket" not in kind:
                rdma += int(count)
                gdr += int(count) if "GDR" in text.upper() else 0
    for counter, quantity in ((outside, fabric.CROSS_NODE_VIA), (inside, fabric.IN_NODE_VIA)):
        for kind, count in counter.most_common():
            yield Fact(quantity, kind, first[kind], samples=count)
    if rdma:
        source = next(s for k, s in first.items() if k.startswith("NET/"))
        yield Fact(fabric.CROSS_NODE_GDR_SHARE, gdr / rdma, source, samples=rdma)


def _paths(evidence: Evidence) -> Iterator[Fact]:
    for table in evidence.table("gpu.paths"):
        c = table.columns
        kinds = [
            str(k)
            for a, b, k in zip(c["first"], c["second"], c["kind"], strict=True)
            if str(a).startswith("GPU") and str(b).startswith("GPU")
        ]
        if kinds:
            counts = Counter("NVLink" if k.startswith("NV") else k for k in kinds)
            words = ", ".join(f"{n // 2 or n} pairs {k}" for k, n in counts.most_common())
            yield Fact(fabric.GPU_PATHS, words, table.source, samples=len(kinds))
            yield Fact(fabric.NVLINK_PAIRS_SHARE, counts["NVLink"] / len(kinds), table.source, samples=len(kinds))


def _addresses(evidence: Evidence, nodes: int) -> Iterator[Fact]:
    """Loopback and bridge addresses among those that nodes use to reach each other."""
    if nodes < 2 and not evidence.all(hang.INTERFACE_ERROR):
        return
    used = evidence.all(fabric.NCCL_INTERFACE)
    loop = [f for f in used if LOOPBACK.search(str(f.value))]
    bridge = [f for f in used if BRIDGE.search(str(f.value)) and not LOOPBACK.search(str(f.value))]
    for fact in [*loop[:4], *bridge[:4]]:
        yield Fact(
            hang.UNREACHABLE_ADDRESS,
            str(fact.value),
            fact.source,
            fact.scope,
            note="loopback" if fact in loop else "bridge",
        )
