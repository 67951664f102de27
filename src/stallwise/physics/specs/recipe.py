"""How a job is run beside how it is cut: number types, kernels, who shards what and when it travels."""

from __future__ import annotations

from dataclasses import dataclass, replace

from stallwise.physics.specs.hardware import Gpu
from stallwise.physics.specs.states import States, state_types

# Attention kernels, oldest first; each is at least as fast as the one before it.
ATTENTION = (
    "unfused",
    "fa1",
    "fa2",
    "fa3",
)  # fa3: FlashAttention-3, cuDNN and whatever else uses Hopper's instructions
FRAMEWORKS = ("megatron", "pytorch", "deepspeed", "jax", "paddle", "other")
KERNELS = ("eager", "fused")  # one kernel per operation, or fused by hand or by a compiler
TP_OVERLAP = ("none", "async", "ring")  # async: the backward's message behind a product; ring: both cut into pieces
SCALINGS = ("tensorwise", "rowwise", "blockwise", "mx")  # how many values share one 8-bit scale
GATHERS = ("step", "pass", "layer")  # sharded weights: once a step, kept from forward to backward, or per use
EIGHT_BIT = ("fp8", "mxfp8", "nvfp4")
# The newest kernel that runs on an architecture at all.
NEWEST_ATTENTION = {
    "volta": "unfused", "turing": "fa1", "ampere": "fa2", "ada": "fa2", "hopper": "fa3", "blackwell": "fa3",
}  # fmt: skip


@dataclass(frozen=True)
class Recipe:
    """The choices that all layouts of one search share."""

    precision: str = "bf16"  # of the matrix products: bf16, fp16, fp8, mxfp8, nvfp4, fp32
    scaling: str = ""  # of 8-bit values; empty: the usual one of the precision
    style: str = "megatron"  # megatron, fsdp, ddp: who keeps which states in which type
    framework: str = "megatron"
    attention: str = ""  # one of ATTENTION; empty: the newest that the card runs
    tp_overlap: str = "ring"  # one of TP_OVERLAP
    gather: str = "layer"  # one of GATHERS: when weights that are sharded are put together
    scatter_once: bool = False  # sharded gradients wait for the last microbatch, whole until then
    optimizer: str = "adamw"
    unfused_optimizer: bool = False  # PyTorch's multi-tensor Adam forms its denominators for all weights at once
    grad_bytes: float = 4.0  # as kept
    reduce_bytes: float = 0.0  # as sent; 0: as kept
    weight_bytes: float = 2.0  # as kept on the GPU between steps
    gather_bytes: float = 2.0  # weights as sent
    frozen_bytes: float = 2.0  # weights under adapters, as kept and sent
    master: bool = True
    states: States | None = None  # where the types follow from framework and ZeRO stage: `at_zero`
    schedule: str = "1f1b"
    overlap: bool = True  # gradients and parameters travel behind the backward and forward pass
    flat_gather: bool = False  # ZeRO-3 of 2021: every rank gathers over its own network card, NVLink unused
    fused: bool = True  # norm, activation and rotary kernels fused (Transformer Engine, torch.compile), not eager
    fused_softmax: bool = False  # an unfused attention with one kernel for scale, mask and softmax (Megatron's)
    lora_rank: int = 0
    lora_targets: str = "attention"  # linear layers with adapters: attention, or all
    expert_overlap: bool = False  # all-to-all runs beside another microbatch's passes (DualPipe, 1F1B with overlap)
    end_stage_layers: int = 0  # layers fewer on the first and the last stage
    recompute_modules: tuple[str, ...] = ()
    recompute_layer_share: float = 1.0  # of the layers that full recomputation covers
    offload: str = "none"
    offload_share: float = 1.0  # of the activations
    dropout: bool = False
    chunked_loss: bool = (
        False  # head and loss a slice of tokens at a time: the logits of a microbatch never exist whole
    )
    sustained: bool = True  # hours of training: clocks have settled at the power limit; a benchmark of seconds beats it
    software_year: float = 0.0  # when the framework was released, 0: not known

    def at_zero(self, zero: int) -> Recipe:
        """With the types that its framework uses under this ZeRO stage."""
        if self.states is None:
            return self
        types = state_types(self.states, self.framework, self.precision, zero)
        return replace(self, **vars(types))

    @property
    def autocast(self) -> bool:
        """fp32 weights cast to 16 bit at every use (torch.autocast), not sharded ones cast when gathered."""
        return self.weight_bytes == 4.0 and self.style != "fsdp" and self.precision != "fp32"

    @property
    def flash_attention(self) -> bool:
        """Whether scores stay on the chip."""
        return self.attention != "unfused"

    @property
    def eight_bit(self) -> bool:
        """Whether products run on 8- or 4-bit values."""
        return self.precision in EIGHT_BIT

    @property
    def scales(self) -> str:
        """How many values share a scale: as said, or what the precision usually means."""
        return self.scaling or ("tensorwise" if self.precision == "fp8" else "mx")


def attention_kernel(recipe: Recipe, gpu: Gpu) -> str:
    """The kernel that runs on this card: the one asked for, or the newest it has; never newer than it has."""
    newest = NEWEST_ATTENTION.get(gpu.architecture, "fa2")
    asked = recipe.attention or newest
    return min(asked, newest, key=ATTENTION.index)
