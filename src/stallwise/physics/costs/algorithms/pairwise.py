"""Pairwise sends: all-to-all as n-1 messages per rank, and the single send and receive of a pipeline.

There is no ring to share: what leaves the domain leaves through the sender's own network card, so an all-to-all over
many domains runs at the rate of one card, a factor `per_domain` below an all-gather of the same size.
"""

from __future__ import annotations

from stallwise.physics.costs.algorithms._parts import Group, Op, Parts

NAME = "pairwise"
AUTOMATIC = True
SETUP_S = 3.0e-6  # beyond a ring's launch: one channel per peer is posted
RATE_SHARE = 0.87  # of a ring's rate: n-1 flows share the SMs' copy loops
OWN_SHARD_RATE_RATIO = 1.6  # against a ring: the local part is a plain copy
FILLING_SHARE = 0.8  # of the geometric mean of latency and wire time
SINGLE_FILLING_SHARE = 0.25  # one peer, one direction: little to fill
NETWORK_SETUP_SHARE = 0.05  # of a network step per further peer: requests are posted together, completions are not


def cost(op: Op, size_bytes: float, group: Group) -> Parts | None:
    """The slower of what stays inside and what leaves."""
    if group.ranks < 2 or op not in (Op.ALL_TO_ALL, Op.SEND_RECV):
        return None
    fabric, n, local = group.fabric, group.ranks, group.per_domain
    if op is Op.SEND_RECV:
        inside_bytes, outside_bytes, own_bytes, share = size_bytes, size_bytes, 0.0, 1.0
    else:
        inside_bytes, outside_bytes = (local - 1) / n * size_bytes, (n - local) / n * size_bytes
        own_bytes, share = size_bytes / n, RATE_SHARE
    link_rate = share * group.link_byte_per_s
    leaves = group.domains > 1
    link_s = 0.0 if local == 1 else inside_bytes / link_rate
    network_s = outside_bytes / group.nic_byte_per_s if leaves else 0.0
    start_s = fabric.link.launch_s + (SETUP_S if op is Op.ALL_TO_ALL else 0.0)
    if leaves:
        start_s += fabric.nic_hop_s * (1 + NETWORK_SETUP_SHARE * (n - local - 1))
    wire_s = max(link_s, network_s) + own_bytes / (OWN_SHARD_RATE_RATIO * group.copy_byte_per_s)
    filling_share = SINGLE_FILLING_SHARE if op is Op.SEND_RECV else FILLING_SHARE
    filling_s = filling_share * (start_s * wire_s) ** 0.5
    limit = "latency" if start_s > wire_s else "network" if network_s > link_s else "link"
    return Parts(start_s, wire_s, filling_s, "Simple", limit)
