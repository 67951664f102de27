"""NVLS: the NVSwitch adds up what the GPUs send and multicasts the sum (NVLink SHARP).

Every GPU sends its buffer once and receives its part of the sum once: (1 + 1/n) of the data where a ring sends nearly
2. That is why its bus bandwidth, computed with the ring's factor, may exceed the line rate. Between domains the parts
meet over trees on all network cards (NVLSTree).
"""

from __future__ import annotations

from math import ceil, log2

from stallwise.physics.costs.algorithms._parts import FILLING_SHARE, Group, Op, Parts

NAME = "nvls"
AUTOMATIC = True
SETUP_S = 35e-6  # one pass of the multicast protocol (fitted with the links; NCCL's tuner assumes 25)
RATE_SHARE = 0.63  # of the line rate, Hopper: 480 GB/s bus at 8 ranks needs 0.686 at the limit of large messages
BLACKWELL_RATE_SHARE = 0.50  # 704 GB/s bus at 8 ranks of 900


def cost(op: Op, size_bytes: float, group: Group) -> Parts | None:
    """One multicast pass, and two trips through the trees where the group spans domains."""
    fabric, local, domains = group.fabric, group.per_domain, group.domains
    if op is not Op.ALL_REDUCE or not fabric.in_switch_reduction or local < 3:
        return None
    share = BLACKWELL_RATE_SHARE if fabric.link.name == "nvlink5" else RATE_SHARE
    link_s = (local + 1) / local * size_bytes / (share * fabric.link.byte_per_s)
    network_s = 0.0
    steps_s = SETUP_S
    if domains > 1:
        network_s = 2 * (domains - 1) / domains * size_bytes / (local * group.nic_byte_per_s)
        steps_s += 2 * ceil(log2(domains)) * fabric.nic_hop_s
    wire_s = max(link_s, network_s)
    filling_s = FILLING_SHARE * (steps_s * wire_s) ** 0.5
    limit = "latency" if steps_s > wire_s else "network" if network_s > link_s else "link"
    return Parts(fabric.link.launch_s + steps_s, wire_s, filling_s, "Simple", limit)
