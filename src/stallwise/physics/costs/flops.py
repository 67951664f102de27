"""How many FLOPs a step takes, by each of the conventions that published numbers use."""

from __future__ import annotations

from stallwise.physics.costs.attention import core_flops
from stallwise.physics.specs.model import FULL, LINEAR, NONE, WINDOW, Model
from stallwise.physics.specs.workload import Workload

CONVENTIONS = {
    "model": "forward and backward (3x) of every matrix product a token meets, causal attention at half the square",
    "full-square": "the same with attention counted over the full square (llm-foundry, SC21)",
    "hardware": "what the GPU executes: the model's plus recomputation",
    "6nd": "6 x parameters x tokens: no attention",
}


def layer_matmul_flops(model: Model, attention: str, mlp: str) -> float:
    """Forward FLOPs per token in one layer's weights."""
    mixing = model.attention_params(attention) if attention != NONE else 0
    return 2.0 * (mixing + model.active_mlp_params(mlp))


def forward_flops(model: Model, seq: int, *, full_square: bool = False) -> float:
    """Forward FLOPs of one token, head included, input table not."""
    total = 2.0 * model.hidden * model.vocab
    for attention, mlp, layers in model.kinds:
        total += layers * layer_matmul_flops(model, attention, mlp)
        if attention in (FULL, WINDOW):
            square = 2.0 if full_square and attention == FULL else 1.0
            total += layers * square * float(core_flops(model, attention, 1.0, seq))
        if attention == LINEAR and model.linear:
            # State update and readout of a chunked scan: about four products with the state per token.
            total += layers * 4.0 * model.linear.state_values
    if model.mtp_layers:
        last = model.layers - 1
        block = layer_matmul_flops(model, model.attention_kind(last), model.mlp_kind(last))
        block += float(core_flops(model, FULL, 1.0, seq)) + 4.0 * model.hidden**2 + 2.0 * model.hidden * model.vocab
        total += model.mtp_layers * block
    return total


def step_flops(
    model: Model, workload: Workload, convention: str = "model", *, recompute: str = "none", frozen: bool = False
) -> float:
    """FLOPs of one optimizer step."""
    if convention == "6nd":
        return 6.0 * model.parameters().active * workload.tokens_per_step
    forward = forward_flops(model, workload.seq, full_square=convention == "full-square")
    factor = 3.0
    if frozen:  # adapters: frozen weights have no gradient of their own; attention's core has both of its
        cores = _core_share(model, workload.seq)
        factor = 2.0 + cores
    if convention == "hardware":
        head = 2.0 * model.hidden * model.vocab
        factor += {"full": (forward - head) / forward, "selective": _core_share(model, workload.seq)}.get(
            recompute, 0.0
        )
    return factor * forward * workload.tokens_per_step


def _core_share(model: Model, seq: int) -> float:
    core = sum(n * float(core_flops(model, a, 1.0, seq)) for a, _, n in model.kinds if a in (FULL, WINDOW))
    return core / forward_flops(model, seq)
