"""Memory of a serving GPU by the byte: weights, KV blocks, the rest, and how many requests fit."""

from __future__ import annotations

from dataclasses import dataclass

from stallwise.physics.costs.rank_work import weight_bytes_per_rank
from stallwise.physics.specs.deployment import Deployment

BLOCK_TOKENS = 16  # vLLM's default block
# CUDA context, graphs, workspaces and activations of a maximal batch: 2 GB and a fiftieth of the card in the start-up
# lines we have read (0.6 to 2.1 GiB of graphs alone).
RESERVED_BYTES = 2e9
RESERVED_SHARE = 0.02


@dataclass(frozen=True, slots=True)
class KvRoom:
    """One GPU's memory."""

    memory_bytes: float
    usable_bytes: float
    weight_bytes: float
    reserved_bytes: float
    kv_bytes: float  # what is left
    bytes_per_token: float  # on one GPU
    tokens: float  # the whole replica holds

    @property
    def fits(self) -> bool:
        """True when the weights leave any room."""
        return self.kv_bytes > 0

    def requests(self, context: float) -> float:
        """How many requests of this length fit."""
        return self.tokens / max(context, 1.0)


def kv_room(d: Deployment) -> KvRoom:
    """What the weights leave for the cache."""
    usable = d.gpu.memory_bytes * d.memory_share
    weights = weight_bytes_per_rank(d)
    reserved = RESERVED_BYTES + RESERVED_SHARE * d.gpu.memory_bytes
    room = usable - weights - reserved
    per_token = d.model.kv_bytes_per_token(d.kv_dtype, d.tp) / d.pp
    tokens = max(room, 0.0) / per_token * d.dp if per_token else float("inf")
    return KvRoom(d.gpu.memory_bytes, usable, weights, reserved, room, per_token, tokens)


def compute_bound_batch(d: Deployment) -> float:
    """The decode batch at which reading the weights takes as long as multiplying them."""
    from stallwise.physics.costs.rank_work import rank_work

    w = rank_work(d)
    read_s = (w.weight_bytes + w.expert_bytes * w.experts / w.ep * (w.per_token_experts > 0)) / w.bandwidth
    per_token_s = w.peak_s_per_token / w.dp + w.per_token_experts * w.expert_s_per_row
    return float(read_s / per_token_s) if per_token_s else float("inf")
