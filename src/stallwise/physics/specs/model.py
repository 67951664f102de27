"""A transformer by its shape: what a config.json says, and the counts that follow from it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

from stallwise.errors import BadRequest
from stallwise.physics.specs.dtype import bytes_per

# How a layer mixes tokens, and what follows it.
FULL, WINDOW, LINEAR, NONE = "full", "window", "linear", "none"
DENSE, MOE = "dense", "moe"
MOST = 10_000_000  # no side of any model is larger


@dataclass(frozen=True)
class Mla:
    """Multi-head latent attention: keys and values pass through one small latent vector."""

    kv_lora_rank: int
    q_lora_rank: int  # 0: queries are projected directly
    rope_dim: int
    nope_dim: int
    v_dim: int
    index_topk: int = 0  # tokens that an indexer picks for attention (DeepSeek sparse attention); 0: all
    index_dim: int = 0  # width of the one key per token that the indexer keeps


@dataclass(frozen=True)
class LinearMixer:
    """A recurrent mixer (Mamba-2, gated delta rule): its weights, and the state one sequence carries per layer."""

    params: int
    state_values: int


class Parameters(NamedTuple):
    """Counts; `active` is what one token multiplies with, `embedding` the input table (and the head when untied)."""

    total: int
    active: int
    embedding: int
    mtp: int


class LayerKind(NamedTuple):
    """A kind of layer and how many of them there are."""

    attention: str
    mlp: str
    layers: int


@dataclass(frozen=True)
class Model:
    """A decoder. `intermediate` is the dense MLP's width, `expert_intermediate` one expert's."""

    name: str
    layers: int
    hidden: int
    heads: int
    kv_heads: int
    head_dim: int
    intermediate: int
    vocab: int
    experts: int = 0
    experts_per_token: int = 0
    shared_experts: int = 0
    expert_intermediate: int = 0
    shared_intermediate: int = 0  # width of all shared experts together
    expert_groups: int = 0  # groups that experts lie in, and of how many a token may choose; 0: of all
    groups_per_token: int = 0
    expert_hidden: int = 0  # latent width that routed experts work on; 0: the hidden size
    dense_layers: int = 0  # the first k layers have a dense MLP
    moe_every: int = 1
    mla: Mla | None = None
    sliding_window: int = 0
    attention_kinds: tuple[str, ...] = ()  # per layer; empty: all full
    mlp_kinds: tuple[str, ...] = ()  # per layer; empty: from dense_layers and moe_every
    linear: LinearMixer | None = None
    tied: bool = False
    mtp_layers: int = 0
    gated: bool = True
    fused_activation: bool = (
        True  # frameworks have one kernel for it (SwiGLU, GELU); squared or clamped ones are chains
    )
    bias: str = "none"  # none, qkv or all
    norm_bias: bool = False
    norms_per_layer: int = 2
    qk_norm: bool = False
    learned_positions: int = 0
    max_context: int = 0
    dtype: str = "bf16"
    source: str = field(default="", compare=False)

    def __post_init__(self) -> None:
        for what in ("layers", "hidden", "heads", "kv_heads", "head_dim", "vocab", "intermediate"):
            if not 1 <= getattr(self, what) <= MOST:
                raise BadRequest(
                    f"{self.name}: {what} must be between 1 and {MOST:,}, not {getattr(self, what)}",
                    hint="give the config.json of a language model",
                )
        if self.heads % self.kv_heads:
            near = max(k for k in range(1, self.heads + 1) if self.heads % k == 0 and k <= max(self.kv_heads, 1))
            raise BadRequest(
                f"{self.name}: {self.kv_heads} key-value heads do not divide {self.heads} heads",
                hint=f"the nearest that does is {near}",
            )
        if self.experts and not 0 < self.experts_per_token <= self.experts:
            raise BadRequest(
                f"{self.name}: {self.experts_per_token} experts per token of {self.experts} experts",
                hint=f"between 1 and {self.experts}",
            )

    @classmethod
    def from_config(cls, config: dict[str, Any], name: str = "") -> Model:
        """Reads a Hugging Face config.json, whatever names its family gives to the same numbers."""
        from stallwise.physics.specs.hf_config import read_config

        return read_config(config, name)

    # --- layers ---

    def attention_kind(self, layer: int) -> str:
        """full, window, linear or none."""
        return self.attention_kinds[layer] if self.attention_kinds else FULL

    def mlp_kind(self, layer: int) -> str:
        """dense, moe or none."""
        if self.mlp_kinds:
            return self.mlp_kinds[layer]
        sparse = self.experts > 0 and layer >= self.dense_layers and (layer + 1) % self.moe_every == 0
        return MOE if sparse else DENSE

    @cached_property
    def kinds(self) -> tuple[LayerKind, ...]:
        """The distinct kinds of layers with their counts."""
        counts = Counter((self.attention_kind(i), self.mlp_kind(i)) for i in range(self.layers))
        return tuple(LayerKind(a, m, n) for (a, m), n in counts.items())

    def attention_layers(self, kind: str) -> int:
        """How many layers mix tokens this way."""
        return sum(k.layers for k in self.kinds if k.attention == kind)

    @property
    def moe_layers(self) -> int:
        """How many layers route to experts."""
        return sum(k.layers for k in self.kinds if k.mlp == MOE)

    # --- widths ---

    @property
    def q_dim(self) -> int:
        """Width of all query heads."""
        if self.mla:
            return self.heads * (self.mla.nope_dim + self.mla.rope_dim)
        return self.heads * self.head_dim

    @property
    def kv_dim(self) -> int:
        """Width of all key heads (of all value heads: the same)."""
        return self.kv_heads * self.head_dim

    @property
    def qk_head_dim(self) -> int:
        """Width over which one head's scores are taken."""
        return self.mla.nope_dim + self.mla.rope_dim if self.mla else self.head_dim

    @property
    def v_head_dim(self) -> int:
        """Width of one head's values."""
        return self.mla.v_dim if self.mla else self.head_dim

    @property
    def up_width(self) -> int:
        """Matrices that widen in an MLP: two when gated, one when not."""
        return 2 if self.gated else 1

    # --- parameters ---

    def attention_params(self, kind: str = FULL) -> int:
        """Weights of one layer's token mixing."""
        if kind == NONE:
            return 0
        if kind == LINEAR:
            return self.linear.params if self.linear else 0
        if self.mla:
            return self._mla_params()
        q, kv = self.heads * self.head_dim, self.kv_dim
        weights = self.hidden * (q + 2 * kv) + q * self.hidden
        if self.bias != "none":
            weights += q + 2 * kv
        if self.bias == "all":
            weights += self.hidden
        return weights + (2 * self.head_dim if self.qk_norm else 0)

    def _mla_params(self) -> int:
        assert self.mla is not None
        m, q = self.mla, self.q_dim
        query = self.hidden * m.q_lora_rank + m.q_lora_rank + m.q_lora_rank * q if m.q_lora_rank else self.hidden * q
        down = self.hidden * (m.kv_lora_rank + m.rope_dim) + m.kv_lora_rank
        up = m.kv_lora_rank * self.heads * (m.nope_dim + m.v_dim)
        return query + down + up + self.heads * m.v_dim * self.hidden

    def mlp_matrix_params(self, width: int) -> int:
        """Weights of one MLP of this width."""
        weights = (self.up_width + 1) * self.hidden * width
        return weights + (self.up_width * width + self.hidden if self.bias == "all" else 0)

    @property
    def expert_params(self) -> int:
        """Weights of one routed expert."""
        weights = (self.up_width + 1) * self.expert_width * self.expert_intermediate
        return weights + (self.up_width * self.expert_intermediate + self.hidden if self.bias == "all" else 0)

    @property
    def expert_width(self) -> int:
        """Width of what is sent to an expert."""
        return self.expert_hidden or self.hidden

    @property
    def router_params(self) -> int:
        """Weights of one layer's router, and of the way into and out of a latent width."""
        latent = 2 * self.hidden * self.expert_hidden
        return self.experts * self.hidden + latent

    def mlp_params(self, kind: str) -> int:
        """Weights of one layer's MLP, all experts and the router included."""
        if kind == NONE:
            return 0
        if kind == DENSE:
            return self.mlp_matrix_params(self.intermediate)
        shared = self.mlp_matrix_params(self.shared_intermediate) if self.shared_intermediate else 0
        return self.experts * self.expert_params + shared + self.router_params

    def active_mlp_params(self, kind: str) -> int:
        """Weights of one layer's MLP that a single token meets."""
        if kind != MOE:
            return self.mlp_params(kind)
        idle = self.experts - self.experts_per_token
        return self.mlp_params(MOE) - idle * self.expert_params

    def norm_params(self) -> int:
        """Weights of one layer's norms."""
        return self.norms_per_layer * self.hidden * (2 if self.norm_bias else 1)

    def layer_params(self, attention: str = FULL, mlp: str = DENSE) -> int:
        """Weights of one layer of this kind."""
        return self.attention_params(attention) + self.mlp_params(mlp) + self.norm_params()

    def parameters(self) -> Parameters:
        """Total, active per token, embeddings, and the multi-token prediction blocks (inside total, not active)."""
        tables = self.vocab * self.hidden * (1 if self.tied else 2) + self.learned_positions * self.hidden
        final_norm = self.hidden * (2 if self.norm_bias else 1)
        total = active = tables + final_norm
        for attention, mlp, count in self.kinds:
            shared = self.attention_params(attention) + self.norm_params()
            total += count * (shared + self.mlp_params(mlp))
            active += count * (shared + self.active_mlp_params(mlp))
        # One MTP block: a layer like the last, a 2h -> h projection and three norms; tables are shared with the model.
        block = self.layer_params(self.attention_kind(self.layers - 1), self.mlp_kind(self.layers - 1))
        mtp = self.mtp_layers * (block + 2 * self.hidden * self.hidden + 3 * self.hidden)
        return Parameters(total + mtp, active, tables, mtp)

    # --- cache ---

    def kv_bytes_per_token(self, dtype: str = "bf16", tp: int = 1) -> float:
        """KV cache one more token takes on one GPU of a tensor-parallel group, windows not yet full.

        Heads are replicated once TP exceeds them; MLA's latent is held whole by every rank.
        """
        if self.mla:
            per_layer = float(self.mla.kv_lora_rank + self.mla.rope_dim)
        else:
            per_layer = 2.0 * self.kv_dim / min(tp, self.kv_heads)
        layers = self.attention_layers(FULL) + self.attention_layers(WINDOW)
        return layers * per_layer * bytes_per(dtype)

    def kv_bytes(self, context: int, dtype: str = "bf16", tp: int = 1) -> float:
        """KV cache (and recurrent state) of one sequence of this length on one GPU."""
        paged = self.attention_layers(FULL) + self.attention_layers(WINDOW)
        state = 0.0
        if self.linear:
            state = self.attention_layers(LINEAR) * self.linear.state_values / tp * bytes_per(dtype)
        if not paged:
            return state
        per_layer_token = self.kv_bytes_per_token(dtype, tp) / paged
        windowed = min(context, self.sliding_window) if self.sliding_window else context
        tokens = self.attention_layers(FULL) * context + self.attention_layers(WINDOW) * windowed
        return per_layer_token * tokens + state


def find_model(name_or_path: str) -> Model:
    """A model by catalogue name, config.json path, folder, or Hugging Face id in the local cache."""
    from stallwise.physics.specs.models import find_model as find

    return find(name_or_path)
