"""Which weights one GPU holds: the fullest stage's layers, its part of each, its share of the tables."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from stallwise.physics.costs.adapters import trained_share
from stallwise.physics.costs.gemm import Array
from stallwise.physics.costs.grid import Grid
from stallwise.physics.specs.model import LINEAR, MOE, NONE, Model
from stallwise.physics.specs.recipe import Recipe


@dataclass(frozen=True)
class Shards:
    """Parameters on one GPU of the fullest stage, before any sharding over data-parallel ranks."""

    params: Array  # all of them
    expert_params: Array  # of these, routed experts (their data-parallel group is EP times smaller)
    optimizer_params: Array  # whose states this GPU keeps
    trainable_share: float


def layer_params_on_gpu(model: Model, attention: str, mlp: str, grid: Grid) -> tuple[Array, Array]:
    """Weights of one layer on one GPU: everything but routed experts, and routed experts."""
    tp = grid.tp
    if attention == NONE:
        mixing = np.zeros(len(grid))
    elif attention == LINEAR or model.mla:
        whole = model.attention_params(attention)
        kept = 0
        if model.mla and attention != LINEAR:  # the down projections are replicated
            kept = model.hidden * (model.mla.q_lora_rank + model.mla.kv_lora_rank + model.mla.rope_dim)
        mixing = (whole - kept) / tp + kept
    else:
        q, kv = model.heads * model.head_dim, model.kv_dim
        mixing = model.hidden * (2 * q / tp + 2 * kv / np.minimum(tp, model.kv_heads)) + np.zeros(len(grid))
    plain = mixing + model.norm_params()
    experts = np.zeros(len(grid))
    if mlp == MOE:
        experts = model.experts * model.expert_params / (grid.ep * grid.etp)
        shared = model.mlp_matrix_params(model.shared_intermediate) if model.shared_intermediate else 0
        plain = plain + shared / tp + model.router_params
    elif mlp != NONE:
        plain = plain + model.mlp_params(mlp) / tp
    return plain, experts


def mean_layer(model: Model, grid: Grid) -> tuple[Array, Array]:
    """The same for the mean layer."""
    plain, experts = np.zeros(len(grid)), np.zeros(len(grid))
    for attention, mlp, layers in model.kinds:
        one, routed = layer_params_on_gpu(model, attention, mlp, grid)
        plain = plain + one * layers / model.layers
        experts = experts + routed * layers / model.layers
    return plain, experts


def shards_of(model: Model, grid: Grid, recipe: Recipe) -> Shards:
    """Weights on a GPU of the fullest stage."""
    plain, experts = mean_layer(model, grid)
    layers = np.ceil(model.layers / grid.pp)
    table = model.vocab * model.hidden / grid.tp
    tables = np.where(grid.pp > 1, table, table * (1 if model.tied else 2))
    tables = tables + np.where(grid.pp == 1, model.learned_positions * model.hidden, 0)
    experts = experts * layers
    params = plain * layers + experts + tables
    data = grid.dp * grid.cp
    expert_data = np.maximum(data * grid.tp / (grid.ep * grid.etp), 1)
    sharded = np.where(
        grid.zero >= 1, (params - experts) / grid.shards + experts / np.minimum(expert_data, grid.shards), params
    )
    return Shards(params, experts, sharded, trained_share(model, recipe))
