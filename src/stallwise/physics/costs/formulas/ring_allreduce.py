"""A ring all-reduce sends nearly twice the buffer from every rank, however many ranks there are.

Reduce-scatter and all-gather each pass n-1 shards of S/n. Nothing can send less, so it is optimal in bandwidth; but its
2(n-1) steps each cost a latency, which is what small messages on large groups pay.
"""

from __future__ import annotations

from stallwise.physics.costs.collectives import Op, collective_time
from stallwise.physics.costs.topology import DGX_H100
from stallwise.units import Unit

EQUATION = """
bytes per rank = 2 (n-1)/n S
time = 2 (n-1) step + bytes / rate;  bus bandwidth = bytes / time
"""
SOURCE = "nccl-tests, PERFORMANCE.md; Patarasuk and Yuan 2009."
FOLK = """
"2 S / bandwidth" ignores latency and protocol: 64 KB over 8 H100s take 19 us where the wire alone would take 0.3. In the
other direction, an NVSwitch that adds up (NVLS) sends only (1 + 1/n) S, so a bus bandwidth above the link rate is real.
`seconds` is one flat ring with one network card a rank. Over nodes of eight H100s NCCL adds up inside each node first and
sends over all its cards at once: that is `nodes_of_8_h100_s`, the number that `plan collective` gives.
"""
UNITS = {
    "size_bytes": Unit.BYTE, "sent_bytes": Unit.BYTE, "byte_per_s": Unit.BYTE_PER_S, "step_s": Unit.SECOND,
    "seconds": Unit.SECOND, "bus_byte_per_s": Unit.BYTE_PER_S,
    "nodes_of_8_h100_s": Unit.SECOND,
}  # fmt: skip


def evaluate(
    size_bytes: float = 140e9, ranks: int = 64, byte_per_s: float = 47e9, step_s: float = 7e-6
) -> dict[str, float]:
    """Bytes each rank sends, the time of one flat ring, its bus bandwidth, and what `plan collective` expects instead.

    The last differs because NCCL does not run one flat ring over nodes of eight H100s: it adds up inside each node first,
    and every node sends over all of its network cards at once.
    """
    sent = 2 * (ranks - 1) / ranks * size_bytes
    seconds = 2 * (ranks - 1) * step_s + sent / byte_per_s
    found = {"sent_bytes": sent, "seconds": seconds, "bus_byte_per_s": sent / seconds if seconds else 0.0}
    if ranks >= 2 and size_bytes >= 0:
        found["nodes_of_8_h100_s"] = collective_time(Op.ALL_REDUCE, size_bytes, int(ranks), DGX_H100).seconds
    return found
