"""A tensor-parallel group spans nodes, so every layer waits for the network.

## What it means
Tensor parallelism exchanges activations several times per layer and cannot hide it. Inside a node NVLink carries that;
across nodes the network does, at a tenth of the speed.

## Why it costs
Two all-reduces per layer, forward and again backward, each at network latency and bandwidth: often more than the
compute they serve.

## What else looks so
Systems whose NVLink domain spans several nodes (NVL72) are fine. A slow network hurts data parallelism too, but that
can hide.

## Fix
Keep the tensor-parallel size at or below the GPUs of a node; use pipeline (or sequence, context) parallelism across
nodes instead. If memory forces it, shrink the per-layer exchange (sequence parallelism, fp8) first.

## How the gain is found
Bytes per layer over the network's bandwidth against NVLink's.
"""

from __future__ import annotations

from stallwise.doctor.findings.clue import Clue, yes
from stallwise.doctor.findings.finding import Finding, Fix, Reason
from stallwise.doctor.findings.rule import rule
from stallwise.evidence.capture import NCCL_LOG, STEP_SHAPE
from stallwise.evidence.catalog.fabric import FABRIC_NODES, FABRIC_RANKS, GPUS_PER_NODE, NODES, ONE_NODE, TP_SIZE
from stallwise.evidence.evidence import Evidence

USUAL_GPUS_PER_NODE = 8  # nearly all servers of the last years; GB200 racks have 72 in one domain and 4 per tray
CLUES = (
    yes(ONE_NODE, "forbids", "every rank is on one node: nothing goes over a network"),
    Clue(
        (TP_SIZE, GPUS_PER_NODE),
        lambda e: e.value(TP_SIZE) > e.value(GPUS_PER_NODE),
        "required",
        "GPUs per node are fewer than tp",
        "GPUs per node are no fewer than tp",
    ),
    Clue(
        (TP_SIZE,),
        lambda e: e.value(TP_SIZE) > _per_node(e),
        "strong",
        "the tensor-parallel group is larger than a node",
        "the tensor-parallel group fits a node",
    ),
)


@rule(TP_SIZE)
def tp_crosses_nodes(evidence: Evidence) -> Finding | None:
    """More tensor-parallel ranks than GPUs in a node."""
    tp = evidence.get(TP_SIZE)
    per_node = _per_node(evidence)
    nodes = max(evidence.value(FABRIC_NODES, 0.0), evidence.value(NODES, 0.0))
    if tp is None or per_node < 1 or tp.number <= per_node or nodes < 2:
        return None
    sizes_known = evidence.get(GPUS_PER_NODE) is not None or nodes > 1
    return Finding(
        headline=f"Tensor parallelism over {tp} ranks crosses nodes of {per_node:.0f} GPUs",
        confidence=0.8 if sizes_known else 0.6,
        because=(Reason.of(f"tensor-parallel size {tp}, {nodes:.0f} nodes with {per_node:.0f} GPUs each", tp),),
        fixes=(
            Fix(
                f"Tensor parallelism of {per_node:.0f} inside the node, pipeline parallelism of {tp.number / per_node:.0f} across.",
                worth="per-layer exchange at NVLink speed",
                cost="a restart; a bubble",
            ),
            Fix(
                "If it must cross: RDMA with GPUDirect, sequence parallelism, quantised exchange.",
                worth="fewer bytes per layer",
                cost="engine support",
            ),
        ),
        avoid="Do not raise the batch to hide it: tensor-parallel exchange grows with the batch.",
        next=(NCCL_LOG, STEP_SHAPE),
    )


def _per_node(evidence: Evidence) -> float:
    """GPUs of a node: stated, else ranks over nodes, else the usual eight."""
    stated = evidence.value(GPUS_PER_NODE)
    if stated == stated:
        return stated
    nodes = max(evidence.value(FABRIC_NODES, 0.0), evidence.value(NODES, 0.0))
    ranks = evidence.value(FABRIC_RANKS, 0.0)  # never the group's own size: other groups may share the nodes
    return ranks / nodes if nodes > 1 and ranks else float(USUAL_GPUS_PER_NODE)
