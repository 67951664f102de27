"""What autograd keeps from the forward pass, tensor by tensor.

Sizes are bytes per token of the microbatch and per layer. `split` says what divides a tensor: "tp" the heads or the
inner width, "sp" tensor parallelism only where sequence parallelism is on, "ep" the rows an expert rank receives.
Checked against peaks measured on an H200 (plain PyTorch, 0.2% in the median) and Korthikanti et al. 2022 (Megatron).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from stallwise.physics.costs.gemm import Array
from stallwise.physics.costs.grid import Grid
from stallwise.physics.specs.model import DENSE, LINEAR, MOE, NONE, Model
from stallwise.physics.specs.recipe import Recipe
from stallwise.physics.specs.workload import Workload

HALF, SINGLE = 2.0, 4.0
DROPPED_INPUT = 5.0  # eager adapters take their inputs in fp32, one by one: a dropped copy and its mask
BEFORE_ACTIVATION, AFTER_ACTIVATION = "widened", "activated"  # keys of the answer: tensors of an MLP


@dataclass(frozen=True, slots=True)
class Saved:
    """One tensor kept for the backward pass."""

    name: str
    byte_per_token: float
    split: str  # "tp", "sp" or "none"
    freed_by: str = ""  # the recompute module that drops it; "selective" drops core_attn


def residual_bytes(recipe: Recipe) -> float:
    """Bytes of the residual stream: fp32 weights under autocast make it fp32."""
    return SINGLE if recipe.weight_bytes == SINGLE and recipe.style != "fsdp" else HALF


def layer_tensors(model: Model, attention: str, mlp: str, seq: int, recipe: Recipe) -> list[Saved]:
    """Everything one layer of this kind keeps."""
    kept: list[Saved] = []
    if attention == LINEAR:
        kept += _linear(model, recipe)
    elif attention != NONE:
        kept += _attention(model, seq, recipe)
    if mlp == DENSE:
        kept += _mlp(model, model.intermediate, recipe, "mlp")
    elif mlp == MOE:
        kept += _experts(model, recipe)
    return kept


def _linear_input(recipe: Recipe) -> float:
    """A linear layer keeps its input, in 8 bit where it multiplies in 8 bit."""
    return 1.0 if recipe.precision in ("fp8", "mxfp8", "nvfp4") else HALF


def _frozen_input(recipe: Recipe) -> float:
    """The same where adapters may leave the layer alone: without a weight gradient nobody asks for its input again."""
    return 0.0 if recipe.lora_rank and recipe.lora_targets == "attention" else _linear_input(recipe)


def _attention(model: Model, seq: int, recipe: Recipe) -> list[Saved]:
    h, q, kv = model.hidden, model.q_dim, model.kv_dim
    out = model.heads * model.v_head_dim
    kept = [
        Saved("norm input", residual_bytes(recipe) * h, "sp"),
        Saved("qkv input", _linear_input(recipe) * h, "sp", "attn_norm"),
    ]
    if model.mla:
        m = model.mla
        kept += [
            Saved("latents", HALF * 2 * (m.q_lora_rank + m.kv_lora_rank) + HALF * m.rope_dim, "none", "mla_up"),
            Saved("query", HALF * q, "tp", "mla_up"),
            Saved("key and value", HALF * model.heads * (m.nope_dim + m.rope_dim + m.v_dim), "tp", "mla_up"),
        ]
    else:
        kept.append(Saved("query, key, value", HALF * (q + 2 * kv), "tp"))
        if not recipe.fused and kv != q:
            kept.append(Saved("keys and values repeated for every head", HALF * 2 * q, "tp"))
    if recipe.flash_attention:
        kept.append(Saved("softmax statistics", SINGLE * model.heads, "tp"))
    else:
        # Megatron keeps the half-precision softmax, its dropout mask and result; PyTorch an fp32 softmax and its cast.
        per_score = (
            HALF + (1 + HALF if recipe.dropout else 0) if recipe.fused or recipe.fused_softmax else SINGLE + HALF
        )
        kept.append(Saved("attention scores", per_score * model.heads * seq, "tp", "core_attn"))
    kept.append(Saved("attention output", (HALF if recipe.flash_attention else _linear_input(recipe)) * out, "tp"))
    if recipe.dropout:
        kept.append(Saved("dropout mask", 1.0 * h, "sp"))
    if recipe.lora_rank and not recipe.fused:
        kept.append(Saved("adapter inputs after dropout", DROPPED_INPUT * (3 * h + out), "none"))
    return kept


def _mlp(model: Model, width: int, recipe: Recipe, name: str) -> list[Saved]:
    h = model.hidden
    kept = [
        Saved("mlp norm input", residual_bytes(recipe) * h, "sp"),
        Saved("mlp input", _frozen_input(recipe) * h, "sp", "mlp_norm"),
        Saved(BEFORE_ACTIVATION, HALF * model.up_width * width, "tp", "mlp"),
        Saved(AFTER_ACTIVATION, _frozen_input(recipe) * width, "tp", "mlp_act"),
    ]
    if recipe.lora_rank and recipe.lora_targets == "all" and not recipe.fused:
        kept.append(Saved("mlp adapter inputs after dropout", DROPPED_INPUT * (model.up_width * h + width), "none"))
    if model.gated and not recipe.fused:
        kept.append(Saved("gate after SiLU", HALF * width, "tp", "mlp_act"))
    if recipe.dropout:
        kept.append(Saved("mlp dropout mask", 1.0 * h, "sp"))
    return [Saved(t.name.replace("mlp", name), t.byte_per_token, t.split, t.freed_by) for t in kept]


def _experts(model: Model, recipe: Recipe) -> list[Saved]:
    h, k = model.expert_width, model.experts_per_token
    wide = model.expert_intermediate
    kept = [
        Saved("moe norm input", residual_bytes(recipe) * model.hidden, "sp"),
        Saved("router input and scores", HALF * model.hidden + SINGLE * 2 * model.experts, "sp"),
        Saved("rows sent to experts", _linear_input(recipe) * h * k, "ep", "moe"),
        Saved(f"experts {BEFORE_ACTIVATION}", HALF * model.up_width * wide * k, "ep", "moe"),
        Saved(f"experts {AFTER_ACTIVATION}", _linear_input(recipe) * wide * k, "ep", "moe_act"),
    ]
    if (
        not recipe.fused
    ):  # routing weights applied after the experts need their rows again; fused code applies them inside
        kept.append(Saved("rows back from experts", HALF * h * k, "ep", "moe"))
    if model.shared_intermediate:
        inner = model.shared_intermediate
        kept += [
            Saved(f"shared expert {BEFORE_ACTIVATION}", HALF * model.up_width * inner, "tp", "mlp"),
            Saved(f"shared expert {AFTER_ACTIVATION}", _linear_input(recipe) * inner, "tp", "mlp_act"),
        ]
    if model.expert_hidden:
        kept.append(Saved("latent rows", HALF * h, "sp"))
    return kept


def _linear(model: Model, recipe: Recipe) -> list[Saved]:
    assert model.linear is not None
    width = model.linear.params / model.hidden
    return [
        Saved("norm input", residual_bytes(recipe) * model.hidden, "sp"),
        Saved("mixer input", _linear_input(recipe) * model.hidden, "sp", "attn_norm"),
        Saved("projections and their convolution", HALF * 1.3 * width, "tp"),
        Saved("chunk states", HALF * model.linear.state_values / 128, "tp"),  # one state per chunk of 128 tokens
        Saved("mixer output", HALF * 0.25 * width, "tp"),
    ]


def selective_modules(recipe: Recipe) -> set[str]:
    """What "selective" re-runs: unfused scores where there are any, else norms, activations and MLA's up."""
    if not recipe.flash_attention:
        return {"core_attn"}
    return {"attn_norm", "mlp_norm", "mlp_act", "moe_act", "mla_up"}


def _every_other_gemm(model: Model, recipe: Recipe) -> list[Saved]:
    """Selective checkpointing by operator keeps attention and every second matrix product and re-runs the rest."""
    inside = model.q_dim + 2 * model.kv_dim + model.up_width * model.intermediate
    return [
        Saved("layer input", residual_bytes(recipe) * model.hidden, "sp"),
        Saved("every other product, split", 0.5 * HALF * inside, "tp"),
        Saved("every other product, whole", 0.5 * HALF * 2 * model.hidden, "sp"),
        Saved("attention output", HALF * model.heads * model.v_head_dim, "tp"),
        Saved("softmax statistics", SINGLE * model.heads, "tp"),
    ]


def kept_tensors(model: Model, attention: str, mlp: str, seq: int, recipe: Recipe, recompute: str) -> list[Saved]:
    """What is left of a layer's tensors under a recompute choice."""
    if recompute == "full":
        return [Saved("layer input", residual_bytes(recipe) * model.hidden, "sp")]
    if recompute == "operator" and mlp == DENSE and attention not in (NONE, LINEAR):
        return _every_other_gemm(model, recipe)
    tensors = layer_tensors(model, attention, mlp, seq, recipe)
    dropped = set(recipe.recompute_modules)
    if recompute in ("selective", "experts", "operator"):
        dropped |= selective_modules(recipe)
    if "mlp" in dropped:
        dropped.add("mlp_act")
    if recompute == "experts" or "moe" in dropped:
        dropped |= {"moe", "moe_act"}
    return [t for t in tensors if t.freed_by not in dropped or not t.freed_by]


def tensor_bytes(tensor: Saved, grid: Grid, tokens: Array) -> Array:
    """A tensor of one microbatch on one GPU."""
    if tensor.split == "tp":
        share = grid.tp.astype(float)
    elif tensor.split == "ep":
        share = np.where(grid.ep > 1, grid.tp / grid.etp, grid.etp).astype(float)
    elif tensor.split == "sp":
        share = np.where(grid.sp, grid.tp, 1).astype(float)
    else:
        share = np.ones(len(grid))
    return np.asarray(tensor.byte_per_token * tokens / share)


def saved_bytes(model: Model, grid: Grid, workload: Workload, recipe: Recipe) -> Array:
    """What one microbatch leaves behind in one mean layer without any recomputation."""
    tokens = grid.mb * workload.seq / grid.cp
    total = np.zeros(len(grid))
    for attention, mlp, layers in model.kinds:
        for tensor in layer_tensors(model, attention, mlp, workload.seq, recipe):
            total = total + tensor_bytes(tensor, grid, tokens) * layers / model.layers
    return total
