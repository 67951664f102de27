"""Bytes each rank sends per step under each way of sharing a model, as identities of the collectives behind them.

All-reduce = reduce-scatter + all-gather in volume; so replicating (DDP) and ZeRO-1/2 move the same, and ZeRO-3 adds one
more all-gather of the weights: 1.5 times.
"""

from __future__ import annotations

from stallwise.errors import BadRequest
from stallwise.physics.costs.collectives import Op, bus_factor


def sent_bytes(op: Op, size_bytes: float, ranks: int) -> float:
    """What each rank puts on its link, ring or pairwise."""
    return bus_factor(op, ranks) * size_bytes if ranks > 1 else 0.0


def sharding_bytes(
    zero_stage: int,
    parameters: float,
    ranks: int,
    *,
    weight_bytes: float = 2,
    gradient_bytes: float = 2,
    accumulation_steps: int = 1,
    keep_gathered: bool = False,
) -> float:
    """Bytes per rank and step. ZeRO-2 and 3 reduce every microbatch; ZeRO-3 gathers for forward and backward anew."""
    if zero_stage not in (0, 1, 2, 3):
        raise BadRequest(f"there is no ZeRO stage {zero_stage}", hint="0 (replicate), 1, 2 or 3")
    gradients = gradient_bytes * parameters
    weights = weight_bytes * parameters
    if zero_stage == 0:
        return sent_bytes(Op.ALL_REDUCE, gradients, ranks)
    rounds = accumulation_steps if zero_stage >= 2 else 1
    scatter = rounds * sent_bytes(Op.REDUCE_SCATTER, gradients, ranks)
    if zero_stage < 3:
        return scatter + sent_bytes(Op.ALL_GATHER, weights, ranks)
    gathers = rounds * (1 if keep_gathered else 2)
    return scatter + gathers * sent_bytes(Op.ALL_GATHER, weights, ranks)


def tensor_parallel_bytes(
    layers: int, tokens: int, hidden: int, ranks: int, *, element_bytes: float = 2, recompute: bool = False
) -> float:
    """Two all-reduces forward and two backward per layer, two more where the forward runs again.

    Sequence parallelism splits each into a reduce-scatter and an all-gather: the same bytes.
    """
    per_layer = 4 + (2 if recompute else 0)
    return layers * per_layer * sent_bytes(Op.ALL_REDUCE, element_bytes * tokens * hidden, ranks)


def expert_parallel_bytes(tokens: int, hidden: int, top_k: int, ranks: int, *, element_bytes: float = 2) -> float:
    """Dispatch and combine of one MoE layer, forward only: every token visits top_k experts and comes back."""
    return 2 * sent_bytes(Op.ALL_TO_ALL, element_bytes * tokens * hidden * top_k, ranks)


def pipeline_bytes(microbatches: int, tokens: int, hidden: int, *, chunks: int = 1, element_bytes: float = 2) -> float:
    """One boundary: activations down and gradients up for each microbatch, once per virtual stage."""
    return 2.0 * microbatches * chunks * tokens * hidden * element_bytes
