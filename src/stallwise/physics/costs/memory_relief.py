"""Ways to make a model fit, with the bytes each frees and what it costs, cheapest first.

Recomputing keeps one input a block instead of everything inside it: of a transformer block's 34 bytes a hidden element
(Korthikanti et al., 2022, without attention scores) two remain. 8-bit states keep 1 of 4 bytes plus scales.
"""

from __future__ import annotations

from dataclasses import dataclass

RECOMPUTE_FREES = 0.85  # of activations; a block's input and the block being recomputed remain
EIGHT_BIT_FREES = 0.73
USABLE_UNUSED = 0.9  # of split free memory; expandable segments keep some rounding
HALF = 0.5


@dataclass(frozen=True, slots=True)
class Holdings:
    """What the device holds when the allocation fails."""

    weights_bytes: float = 0.0
    gradients_bytes: float = 0.0
    optimizer_bytes: float = 0.0
    activations_bytes: float = 0.0
    logits_bytes: float = 0.0
    unused_bytes: float = 0.0
    request_bytes: float = 0.0
    full_precision: bool = False
    recomputing: bool = False
    microbatch: float = 0.0  # samples; 0 where nobody says, and one cannot be halved
    devices: int = 1


@dataclass(frozen=True, slots=True)
class Way:
    """One way to free memory."""

    action: str
    saves_bytes: float
    cost: str
    risk: str = ""


def ways_to_fit(held: Holdings, shortfall_bytes: float) -> list[Way]:
    """All ways that free anything, from free of charge to slow."""
    del shortfall_bytes  # the order is by cost; which ones suffice is for the caller to mark
    states = held.weights_bytes + held.gradients_bytes + held.optimizer_bytes
    moving = held.activations_bytes + held.logits_bytes
    shards = max(held.devices, 2)
    return [
        Way("allocator settings: PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True", USABLE_UNUSED * held.unused_bytes,
            "one environment variable"),
        Way("fused or chunked loss: never hold all logits", 0.9 * held.logits_bytes, "one import; no time"),
        Way("mixed precision: bf16 activations", HALF * held.activations_bytes if held.full_precision else 0.0,
            "one line; faster too", "sums need fp32"),
        Way("micro-batch halved, accumulate twice",
            HALF * moving + HALF * held.request_bytes if moving and held.microbatch != 1 else 0.0,
            "smaller products; 0 to 15% of step time"),
        Way("recompute activations (checkpointing)",
            0.0 if held.recomputing else RECOMPUTE_FREES * held.activations_bytes, "25 to 33% more compute"),
        Way("8-bit optimizer states", EIGHT_BIT_FREES * held.optimizer_bytes, "one import", "check convergence"),
        Way(f"sharding of states over {shards} GPUs (FSDP or ZeRO)", (1 - 1 / shards) * states,
            "collectives each step" if held.devices > 1 else "more GPUs and collectives each step"),
        Way("offload optimizer states to the host", held.optimizer_bytes, "PCIe traffic each step: often 2x slower"),
    ]  # fmt: skip
