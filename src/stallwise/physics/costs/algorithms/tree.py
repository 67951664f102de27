"""Double binary tree: two trees over the domains, each carrying half, so that every domain is a leaf in one of them.

The steps grow with the logarithm of the domains and not with the ranks, which is what a large group of small messages
needs. Inside a domain the ranks form a chain.
"""

from __future__ import annotations

from math import ceil, log2

from stallwise.physics.costs.algorithms._parts import Group, Op, Parts, best, bulk, low_latency

NAME = "tree"
AUTOMATIC = True
RATE_SHARE = 0.92  # of a ring's rate: reduce and forward share the SMs (factor in NCCL's tuner)


def cost(op: Op, size_bytes: float, group: Group) -> Parts | None:
    """Up and down: 2 (local chain + log2 of the domains) steps."""
    if op is not Op.ALL_REDUCE or group.ranks < 2 or group.domains < 2:
        return None
    fabric, domains = group.fabric, group.domains
    steps_s = 2 * ((group.per_domain - 1) * fabric.link.hop_s + ceil(log2(domains)) * fabric.nic_hop_s)
    link_s = 0.0 if group.per_domain == 1 else 2 * size_bytes / (RATE_SHARE * group.link_byte_per_s)
    network_bytes = 2 * (domains - 1) / domains * size_bytes
    network_s = network_bytes / (RATE_SHARE * group.per_domain * group.nic_byte_per_s)
    wire_s = max(link_s, network_s)
    limit = "network" if network_s > link_s else "link"
    launch_s = fabric.link.launch_s
    return best(low_latency(launch_s, steps_s, wire_s), bulk(launch_s, steps_s, wire_s, 0.0, limit))
