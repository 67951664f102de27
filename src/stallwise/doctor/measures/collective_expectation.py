"""Collective tests against what the hardware should give, and who comes last in recorded collectives."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator

from stallwise.errors import StallwiseError
from stallwise.evidence.catalog import fabric, hang
from stallwise.evidence.evidence import Evidence, Item
from stallwise.evidence.fact import Fact, Scope, Source, Table
from stallwise.physics.costs.collectives import collective_time, op_named
from stallwise.physics.costs.topology import fabric_of
from stallwise.physics.specs.cluster import cluster_of
from stallwise.physics.specs.hardware import find_gpu
from stallwise.units import Unit, show

ORDER = -6
OTHER_LINKS = 1.25  # times the most that the wires give; the interval itself holds the spread of measured links
VAGUE = 4.0  # from the low end of an expectation to its high one; known fabrics lie within 2 to 3
LARGE_BYTES = 16e6  # below this latency rules, and it says little about links
SHORTER = 0.67  # of the median: the last to come finds the others waiting and is through quickly
USUALLY = 0.6  # of the collectives
ENOUGH = 10
PAIR = 2


def from_evidence(evidence: Evidence) -> Iterator[Item]:
    """Expected and measured bus bandwidth of every test; the late rank of inspector records."""
    for table in evidence.table("collective.bandwidth"):
        expected_facts = list(_against_links(table))
        yield from expected_facts or _against_the_map(table, evidence)
    yield from _late(evidence.table("collective.records"))


def _against_links(table: Table) -> Iterator[Fact]:
    ranks, nodes = int(table.meta.get("ranks") or 0), max(int(table.meta.get("nodes") or 1), 1)
    card = find_gpu(str(table.meta.get("device") or ""))
    name = str(table.meta.get("test") or "all_reduce").removesuffix("_perf")
    size = table.columns["size_bytes"]
    if card is None or ranks < 2 or not len(size) or size.max() < LARGE_BYTES:
        return
    place = int(size.argmax())
    try:
        per_node = max(ranks // nodes, 1)
        wires = fabric_of(cluster_of(card, ranks, gpus_per_node=per_node))
        expected = collective_time(op_named(name), float(size[place]), ranks, wires, per_domain=per_node)
    except StallwiseError:
        return  # a collective or a card the model does not know
    measured = float(table.columns["bus_bytes_per_s"][place])
    moved = expected.bus_byte_per_s * expected.seconds
    low, high = moved / expected.high_s, moved / expected.low_s
    if measured > OTHER_LINKS * high or (measured >= low and high > VAGUE * low):
        return  # other wires than the model's, or a range so wide that nothing inside it can be called good
    yield Fact(fabric.NCCL_EXPECTED, expected.bus_byte_per_s, table.source, low=low, high=high, note=expected.algorithm)
    share = fabric.NCCL_SHARE_IN_NODE if nodes == 1 else fabric.NCCL_SHARE_ACROSS
    words = f"{show(measured, Unit.BYTE_PER_S)} of {show(expected.bus_byte_per_s, Unit.BYTE_PER_S)} at {ranks} ranks on {card.title}"
    yield Fact(share, measured / low, table.source, samples=len(size), note=words)


def _against_the_map(table: Table, evidence: Evidence) -> Iterator[Fact]:
    """Where the model knows no such wires: what NCCL itself says that one link gives.

    Two ranks have that link alone, and a card behind a switch no other; in a mesh of links the sum is not told. The better
    direction is what the links should give: a pair that reads 240 one way and 20 the other has lost its lanes.
    """
    ranks, nodes = int(table.meta.get("ranks") or 0), max(int(table.meta.get("nodes") or 1), 1)
    links, size = evidence.get(fabric.NCCL_NVLINK_RATE), table.columns["size_bytes"]
    if links is None or ranks != PAIR or nodes > 1 or not len(size) or size.max() < LARGE_BYTES:
        return
    measured = float(table.columns["bus_bytes_per_s"][int(size.argmax())])
    yield Fact(fabric.NCCL_EXPECTED, links.number, links.source, note="NCCL's own map")
    words = (
        f"{show(measured, Unit.BYTE_PER_S)} of {show(links.number, Unit.BYTE_PER_S)} that NCCL's own map gives the pair"
    )
    yield Fact(fabric.NCCL_SHARE_IN_NODE, measured / links.number, table.source, samples=len(size), note=words)


def _late(tables: list[Table]) -> Iterator[Fact]:
    """In one collective the late rank spends the least time: the others were already waiting in it."""
    calls: dict[tuple[str, int], dict[int, float]] = defaultdict(dict)
    for table in tables:
        for sequence, time_s in zip(table.columns["sequence"], table.columns["time_s"], strict=True):
            calls[str(table.scope.group), int(sequence)][int(table.scope.rank or 0)] = float(time_s)
    whole = [c for c in calls.values() if len(c) >= 3]
    late: Counter[int] = Counter()
    for call in whole:
        middle = sorted(call.values())[len(call) // 2]
        rank, time_s = min(call.items(), key=lambda item: item[1])
        if time_s < SHORTER * middle:
            late[rank] += 1
    if len(whole) >= ENOUGH and late:
        rank, count = late.most_common(1)[0]
        if count >= USUALLY * len(whole):
            text = f"rank {rank} comes last in {count} of {len(whole)} collectives: its own are short, the others' long"
            yield Fact(hang.LATE_RANK, text, Source(tables[0].source.file), Scope(rank=rank), samples=len(whole))
