"""What is odd about a planning question itself: numbers that do not divide, types that a card does not have."""

from __future__ import annotations

from math import gcd

from stallwise.physics.specs.cluster import Cluster
from stallwise.physics.specs.recipe import Recipe
from stallwise.physics.specs.workload import Workload


def remarks_on(cluster: Cluster, workload: Workload, recipe: Recipe) -> list[str]:
    """Sentences, none where nothing is odd."""
    gpus, batch, node = cluster.gpus, workload.global_batch, cluster.gpus_per_node
    found = []
    if gpus > node and gpus % node:
        down = gpus // node * node
        found.append(f"{gpus} GPUs leave a node of {node} partly empty: {down} or {down + node} fill all")
    shared = gcd(gpus, batch)
    if shared < min(gpus, batch):
        near = max(round(batch / gpus), 1) * gpus
        found.append(
            f"a global batch of {batch} and {gpus} GPUs share no divisor above {shared}, so DP cannot exceed it and the "
            f"other {gpus // shared} ways must be TP, PP or CP; a global batch of {near} leaves every axis free"
        )
    if recipe.precision == "bf16" and "bf16" not in cluster.gpu.peak_flop_per_s:
        found.append(
            f"{cluster.gpu.title} has no bf16 matrix units: it runs at the fp32 rate; --precision fp16 is meant for it"
        )
    return found
