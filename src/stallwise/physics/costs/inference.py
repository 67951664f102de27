"""How long one iteration of an inference engine takes: a roofline with measured efficiencies.

    iteration = weights read | matmuls  +  experts read | grouped tiles  +  KV read | attention  +  passes over the
                residual stream  +  collectives  +  kernels that do next to nothing  +  host

where a | b is the larger of the two, rounded where they are near (a fourth-power mean). Decode reads all weights for a
handful of tokens, prefill multiplies them with thousands: the same formula gives both, and their mixture in one batch.
Formulas take floats or numpy arrays.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from stallwise.physics.costs.rank_work import RankWork, rank_work
from stallwise.physics.costs.serving_constants import Constants, constants
from stallwise.physics.specs.deployment import Deployment

SHARPNESS = 4.0  # of the roofline's corner; measured GEMMs lose about a fifth where memory and arithmetic meet


@dataclass(frozen=True, slots=True)
class IterationParts:
    """Where one iteration goes, in seconds."""

    weights_s: Any
    kv_s: Any
    arithmetic_s: Any
    communication_s: Any
    launch_s: Any
    host_s: Any

    @property
    def total_s(self) -> Any:
        """All of it."""
        return self.weights_s + self.kv_s + self.arithmetic_s + self.communication_s + self.launch_s + self.host_s


def larger(a: Any, b: Any) -> Any:
    """The larger of two times that overlap, a little more where they are alike."""
    return (a**SHARPNESS + b**SHARPNESS) ** (1 / SHARPNESS)


def iteration_parts(
    w: RankWork, k: Constants, *, tokens: Any, sampled: Any, kv_bytes: Any, decode_context: Any, prefill_pairs: Any
) -> IterationParts:
    """One iteration over `tokens` of the whole deployment; KV bytes, context and pairs are per attention replica.

    `decode_context` sums the cached tokens that decoding queries attend to, `prefill_pairs` the query-key pairs of
    prompts; `sampled` sequences go through the head.
    """
    mine = tokens / w.dp  # tokens of one attention replica
    read = w.bandwidth * (1 + w.blackwell * (k.blackwell_read_share - 1))
    rate = 1 + w.blackwell * (k.blackwell_matmul_share - 1)
    rate = rate * (1 + w.fp8 * (k.fp8_share - 1)) * (1 + w.fp4 * (k.fp4_share - 1))
    rate = rate * (1 + w.fp8 * w.blackwell * (k.blackwell_fp8_share - 1))
    weights = w.weight_bytes / (read * k.weight_read_share)
    matmul = larger(weights, mine * w.peak_s_per_token / (k.matmul_share * rate))
    head_read = w.head_bytes / (read * k.weight_read_share)
    head = larger(head_read, sampled * w.head_s_per_token / k.matmul_share)
    idle = (1 - w.per_token_experts / w.experts) ** tokens  # chance that an expert meets no token
    touched = w.experts * (1 - idle) * (w.per_token_experts > 0)
    expert_read = touched / w.ep * w.expert_bytes / (read * k.expert_read_share)
    rows = tokens * w.per_token_experts
    padded_s = (rows + k.expert_padding_rows * touched) * w.expert_s_per_row / w.expert_tile_share
    experts = larger(expert_read, padded_s / (k.expert_matmul_share * rate))
    stream = mine * w.stream_bytes_per_token * k.stream_passes
    stream = (stream + rows * w.expert_stream_bytes_per_row * k.expert_passes) / read
    kv = kv_bytes / (read * k.kv_read_share)
    pairs_s = decode_context * w.decode_s_per_context + prefill_pairs * w.prefill_s_per_pair
    attention = larger(kv, pairs_s / k.attention_share)
    reduce = w.collectives * k.collective_s + mine * w.link_s_per_token / k.link_share
    exchange = w.exchanges * k.collective_s + mine * w.exchange_s_per_token / k.all_to_all_share
    launch = w.layers * (k.layer_s + w.fp8 * k.fp8_layer_s)
    launch = launch + w.moe_layers * k.moe_layer_s + w.mla_layers * k.mla_layer_s + w.indexed_layers * k.indexer_layer_s
    launch = launch * (1 + w.blackwell * (k.blackwell_layer_share - 1))
    read_s = weights + head_read + expert_read
    return IterationParts(
        weights_s=read_s,
        kv_s=kv,
        arithmetic_s=matmul + head + experts - read_s + attention - kv + stream,
        communication_s=reduce + exchange,
        launch_s=launch,
        host_s=k.host_s + k.sequence_s * sampled / w.dp,  # attention replicas schedule their own sequences
    )


class Engine:
    """The clock of one deployment: how long its iterations take."""

    def __init__(self, deployment: Deployment, k: Constants | None = None) -> None:
        self.deployment = deployment
        self.work = rank_work(deployment)
        self.k = k or constants(deployment.engine, "", deployment.engine_version, deployment.gpu.kinds)

    def kv_read_bytes(self, context: float) -> float:
        """What one sequence's attention reads per decoded token on one GPU."""
        w = self.work
        windowed = min(context, w.window) if w.window > 1 else 0.0
        return float(w.kv_bytes_per_token * context + w.window_bytes_per_token * windowed + w.state_bytes)

    def parts(
        self, decodes: float, context: float, prefill_tokens: float = 0.0, prefill_pairs: float = 0.0
    ) -> IterationParts:
        """One iteration of `decodes` sequences at a mean `context`, with prompt tokens mixed in.

        Under pipeline parallelism the batch is cut into as many microbatches as stages, and a token passes them all.
        """
        w = self.work
        tokens = (decodes + prefill_tokens) / w.pp
        alone = decodes / w.dp / w.pp
        return iteration_parts(
            w,
            self.k,
            tokens=max(tokens, 1e-9),
            sampled=max(decodes, 1.0),
            kv_bytes=alone * self.kv_read_bytes(context),
            decode_context=alone * context,
            prefill_pairs=prefill_pairs / w.dp / w.pp,
        )

    def decode_s(self, batch: float, context: float) -> float:
        """One decode iteration."""
        return float(self.parts(batch, context).total_s)

    def prefill_s(self, tokens: float, cached: float = 0.0) -> float:
        """One prompt of so many new tokens (after `cached` ones) by itself, on one attention replica."""
        w = self.work
        pairs = tokens * (cached + tokens / 2)
        parts = iteration_parts(
            w,
            self.k,
            tokens=max(tokens * w.dp, 1.0),
            sampled=1.0,
            kv_bytes=1.0,
            decode_context=0.0,
            prefill_pairs=pairs,
        )
        return float(parts.total_s - parts.host_s)
