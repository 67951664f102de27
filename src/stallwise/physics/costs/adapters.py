"""Low-rank adapters: how many weights they add, and what running them beside frozen layers costs."""

from __future__ import annotations

from typing import Any

from stallwise.physics.specs.model import DENSE, LINEAR, MOE, NONE, Model
from stallwise.physics.specs.recipe import Recipe

# Kernels of one adapted layer, forward: two thin products, scale, add; eager code also drops out and casts.
KERNELS_FUSED, KERNELS_EAGER = 3.0, 8.0
# Bytes per value of a layer's input (k) and output (n), forward and backward. Fused: x read, the sum written once more.
# Eager: dropout reads x, writes it and a mask; the product, its scaled copy and the sum are passes of their own.
FUSED_INPUT, FUSED_OUTPUT = (2.0, 4.0), (6.0, 4.0)
EAGER_INPUT, EAGER_OUTPUT = (7.0, 10.0), (11.0, 8.0)
DEQUANTISED_BYTES = 2.0  # a stored weight is written out in 16 bit before every product


def shapes(model: Model, attention: str, mlp: str, targets: str) -> list[tuple[float, float]]:
    """(out, in) of the linear layers that get adapters in one layer."""
    found: list[tuple[float, float]] = []
    if attention not in (NONE, LINEAR):
        found += [(model.q_dim, model.hidden), (model.kv_dim, model.hidden), (model.kv_dim, model.hidden)]
        found.append((model.hidden, model.heads * model.v_head_dim))
    if targets == "all" and mlp == DENSE:
        found += [(model.intermediate, model.hidden)] * model.up_width + [(model.hidden, model.intermediate)]
    if targets == "all" and mlp == MOE:
        wide = model.expert_intermediate
        found += ([(wide, model.expert_width)] * model.up_width + [(model.expert_width, wide)]) * model.experts
    return found


def trained_share(model: Model, recipe: Recipe) -> float:
    """Of all weights that a step updates."""
    if not recipe.lora_rank:
        return 1.0
    per_rank = sum(
        layers * sum(n + k for n, k in shapes(model, attention, mlp, recipe.lora_targets))
        for attention, mlp, layers in model.kinds
    )
    return float(min(1.0, recipe.lora_rank * per_rank / max(model.parameters().total, 1)))


def traffic(tokens: Any, n: Any, k: Any, recipe: Recipe) -> tuple[Any, Any, float]:
    """Bytes that one adapter moves forward and backward, and kernels it launches forward."""
    into, out = (FUSED_INPUT, FUSED_OUTPUT) if recipe.fused else (EAGER_INPUT, EAGER_OUTPUT)
    kernels = KERNELS_FUSED if recipe.fused else KERNELS_EAGER
    return tokens * (into[0] * k + out[0] * n), tokens * (into[1] * k + out[1] * n), kernels


def widening_bytes(weights: Any, recipe: Recipe) -> Any:
    """Frozen weights kept in fewer bits than the products take are read and written out before each pass."""
    if not recipe.lora_rank or recipe.frozen_bytes >= 2.0 or recipe.eight_bit:
        return 0.0 * weights
    return (recipe.frozen_bytes + DEQUANTISED_BYTES) * weights
