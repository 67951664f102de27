"""Every frame carries headers and costs a packet: a larger MTU sends more of the line rate, and far fewer packets.

On the wire a frame has 38 bytes beside its MTU: preamble 8, header 14, checksum 4, gap 12. Protocol headers are inside the MTU.
"""

from __future__ import annotations

from stallwise.units import Unit

EQUATION = "goodput = rate x (MTU - headers) / (MTU + 38)    packets/s = rate / (MTU + 38)"
SOURCE = "IEEE 802.3 framing; IPv4 20 + TCP 20 bytes, RoCE v2 IPv4 20 + UDP 8 + BTH 12 + ICRC 4."
FOLK = """
Jumbo frames win 4% of the bandwidth and a sixth of the packets: it is the packets that a host's cores feel over sockets. RDMA has
its own MTU (up to 4096): 9000 on the switch only makes room for it. One hop with 1500 drops or splits all larger frames, and
that looks like a hang of large messages while small ones pass.
"""
UNITS = {
    "mtu": Unit.BYTE, "headers": Unit.BYTE, "byte_per_s": Unit.BYTE_PER_S, "goodput_byte_per_s": Unit.BYTE_PER_S,
    "packet_per_s": Unit.COUNT, "standard_goodput_byte_per_s": Unit.BYTE_PER_S, "standard_packet_per_s": Unit.COUNT,
    "gain_ratio": Unit.RATIO, "packet_ratio": Unit.RATIO,
}  # fmt: skip
ON_THE_WIRE = 38
STANDARD = 1500


def evaluate(mtu: float = 9000.0, headers: float = 40.0, byte_per_s: float = 12.5e9) -> dict[str, float]:
    """Goodput and packets a second at this MTU, and at the standard one."""

    def at(size: float) -> tuple[float, float]:
        return byte_per_s * (size - headers) / (size + ON_THE_WIRE), byte_per_s / (size + ON_THE_WIRE)

    (good, packets), (plain, many) = at(mtu), at(STANDARD)
    return {
        "goodput_byte_per_s": good, "packet_per_s": packets, "standard_goodput_byte_per_s": plain,
        "standard_packet_per_s": many, "gain_ratio": good / plain, "packet_ratio": many / packets,
    }  # fmt: skip
