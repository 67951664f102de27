"""Ring: every rank passes a shard to its neighbour until all have passed everywhere.

Each rank sends (n-1)/n of the data per pass, two passes for an all-reduce: nothing can send less, so bandwidth is
optimal; but the steps grow with n. Between domains every ring crosses one network card in and one out, and NCCL runs
one ring per card, so a domain's cards add up.
"""

from __future__ import annotations

from stallwise.physics.costs.algorithms._parts import Group, Op, Parts, best, bulk, low_latency

NAME = "ring"
AUTOMATIC = True
PASSES = {Op.ALL_REDUCE: 2, Op.ALL_GATHER: 1, Op.REDUCE_SCATTER: 1, Op.BROADCAST: 1, Op.REDUCE: 1}


def cost(op: Op, size_bytes: float, group: Group) -> Parts | None:
    """Steps times latency, and the busiest link's bytes over its rate."""
    passes = PASSES.get(op)
    if passes is None or group.ranks < 2:
        return None
    n, domains, fabric = group.ranks, group.domains, group.fabric
    whole = op in (Op.BROADCAST, Op.REDUCE)  # a chain: every link carries all of it, chunk after chunk
    sent_bytes = size_bytes if whole else passes * (n - 1) / n * size_bytes
    own_s = 0.0 if whole else size_bytes / n / group.copy_byte_per_s
    link_s = sent_bytes / group.link_byte_per_s
    network_s = 0.0 if domains < 2 else sent_bytes / (group.per_domain * group.nic_byte_per_s)
    if group.per_domain == 1:
        link_s = 0.0
    network_steps = passes * (domains - 1)
    link_steps = passes * (n - 1) - network_steps
    steps_s = link_steps * fabric.link.hop_s + network_steps * fabric.nic_hop_s
    wire_s = max(link_s, network_s)
    limit = "network" if network_s > link_s else "link"
    launch_s = fabric.link.launch_s
    return best(low_latency(launch_s, steps_s, wire_s), bulk(launch_s, steps_s, wire_s, own_s, limit))
