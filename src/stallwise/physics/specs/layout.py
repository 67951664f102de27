"""How a training job is cut over GPUs, and the choices that trade memory for time."""

from __future__ import annotations

from dataclasses import dataclass

from stallwise.errors import BadRequest
from stallwise.physics.specs.model import Model
from stallwise.physics.specs.workload import Workload

# experts: selective, and the routed experts re-run; operator: attention and every second product kept, the rest re-run
RECOMPUTE = ("none", "selective", "full", "experts", "operator")
# What per-module recompute may name: the tensors each stops saving are in costs.activations.
MODULES = ("core_attn", "attn_norm", "mlp_norm", "mlp_act", "mlp", "moe_act", "moe", "mla_up", "logits")
PRECISIONS = ("bf16", "fp16", "fp32", "fp8", "mxfp8", "nvfp4", "pure_bf16", "amp")
SCHEDULES = ("1f1b", "gpipe", "interleaved", "zb-h1", "zb-h2", "zb-v", "v-half", "v-min", "dualpipe")
OFFLOADS = ("none", "optimizer", "activations", "params")

# Bytes of optimizer state per parameter, without any fp32 master copy of the weights (that is `master`).
OPTIMIZERS: dict[str, float] = {
    "adamw": 8.0,  # two fp32 moments
    "adamw-bf16": 4.0,  # two bf16 moments
    "adamw-8bit": 2.0 + 2 * 4 / 2048,  # two 8-bit moments, one fp32 scale per block of 2048 (Dettmers 2022)
    "adafactor": 0.01,  # rows and columns only
    "lion": 4.0,  # one fp32 moment
    "muon": 4.0,  # one fp32 momentum (embeddings and head usually stay on AdamW)
    "sgd": 0.0,
    "sgd-momentum": 4.0,
}
STYLES = ("megatron", "fsdp", "ddp")


@dataclass(frozen=True)
class Layout:
    """Axes multiply to the number of GPUs (EP and ETP lie inside DP x CP x TP)."""

    tp: int = 1
    pp: int = 1
    dp: int = 1
    cp: int = 1
    ep: int = 1
    etp: int = 0  # tensor parallelism inside experts; 0: 1 where EP is used, TP otherwise
    virtual_stages: int = 1
    sequence_parallel: bool = True
    zero: int = 1  # 0 replicated, 1 optimizer states, 2 and gradients, 3 and weights
    shard_group: int = 0  # HSDP: ranks that share one copy; 0: all of DP
    micro_batch: int = 1
    recompute: str = "none"
    recompute_modules: tuple[str, ...] = ()
    offload: str = "none"
    precision: str = "bf16"
    grad_dtype: str = "fp32"  # empty: as the framework has it
    param_dtype: str = "bf16"  # fp8: Transformer Engine's 8-bit primary weights beside an fp32 master copy
    master: bool = True  # an fp32 copy of the weights in the optimizer
    optimizer: str = "adamw"
    schedule: str = "1f1b"
    lora_rank: int = 0
    lora_targets: str = "attention"  # linear layers with adapters: attention, or all
    frozen_dtype: str = ""  # of weights under adapters: bf16, fp8 or nf4; empty: as the precision has it
    style: str = "megatron"
    attention: str = ""  # kernel of the attention core; empty: the newest that the card runs
    end_stage_layers: int = 0  # layers fewer on the first and the last stage, to make room for the head

    @property
    def gpus(self) -> int:
        """GPUs it takes."""
        return self.tp * self.pp * self.dp * self.cp

    @property
    def shards(self) -> int:
        """Ranks that share one copy of sharded states."""
        return self.shard_group or self.dp * self.cp

    @property
    def expert_tp(self) -> int:
        """Tensor parallelism inside an expert."""
        return self.etp or (1 if self.ep > 1 else self.tp)

    @property
    def label(self) -> str:
        """As engineers write it on a board."""
        parts = [f"TP{self.tp}", f"PP{self.pp}", f"DP{self.dp}"]
        if self.virtual_stages > 1:
            parts[1] += f"x{self.virtual_stages}"
        if self.cp > 1:
            parts.append(f"CP{self.cp}")
        if self.ep > 1:
            parts.append(f"EP{self.ep}")
        sharding = f"HSDP{self.shard_group}" if self.zero == 3 and self.shard_group else f"ZeRO{self.zero}"
        return " ".join([*parts, sharding, f"mb{self.micro_batch}", f"recompute={self.recompute}"])

    def micro_batches(self, workload: Workload) -> int:
        """Microbatches one data-parallel rank runs in a step."""
        return workload.global_batch // (self.dp * self.micro_batch)


def nearest_divisor(number: int, wanted: int) -> int:
    """The divisor of `number` closest to `wanted`."""
    divisors = [d for d in range(1, number + 1) if number % d == 0] if number < 10**6 else [1, number]
    return min(divisors, key=lambda d: (abs(d - wanted), d))


def check(layout: Layout, model: Model, workload: Workload, gpus: int) -> None:
    """Raises with the nearest valid value where a layout cannot be."""
    for axis in ("tp", "pp", "dp", "cp", "ep", "virtual_stages", "micro_batch"):
        if getattr(layout, axis) < 1:
            raise BadRequest(f"{axis} = {getattr(layout, axis)} cannot be", hint=f"the nearest is {axis} = 1")
    _check_model_axes(layout, model)
    if layout.gpus != gpus:
        fits = gpus // (layout.tp * layout.pp * layout.cp)
        raise BadRequest(
            f"TP {layout.tp} x PP {layout.pp} x CP {layout.cp} x DP {layout.dp} is {layout.gpus} GPUs, not {gpus}",
            hint=f"DP {fits} uses {fits * layout.tp * layout.pp * layout.cp}" if fits else "fewer TP x PP x CP",
        )
    if layout.ep > 1 and (layout.dp * layout.cp * layout.tp) % (layout.ep * layout.expert_tp):
        width = layout.dp * layout.cp * layout.tp // layout.expert_tp
        raise BadRequest(
            f"EP {layout.ep} does not divide the {width} ranks it lies in (DP x CP x TP / ETP)",
            hint=f"the nearest EP that does is {nearest_divisor(width, layout.ep)}",
        )
    step = layout.dp * layout.micro_batch
    if workload.global_batch % step or workload.global_batch < step:
        low = max(workload.global_batch // step, 1) * step
        raise BadRequest(
            f"global batch {workload.global_batch} is no multiple of microbatch {layout.micro_batch} x DP {layout.dp}",
            hint=f"the nearest global batch is {low}",
        )
    if layout.virtual_stages > 1 and layout.micro_batches(workload) % layout.pp:
        whole = -(-layout.micro_batches(workload) // layout.pp) * layout.pp
        raise BadRequest(
            f"interleaving needs microbatches in multiples of PP {layout.pp}, not {layout.micro_batches(workload)}",
            hint=f"the nearest is {whole}: a global batch of {whole * step}",
        )
    for what, allowed in (
        ("recompute", RECOMPUTE), ("schedule", SCHEDULES), ("offload", OFFLOADS), ("style", STYLES),
        ("precision", PRECISIONS),
    ):  # fmt: skip
        if getattr(layout, what) not in allowed:
            raise BadRequest(f"{what} '{getattr(layout, what)}' is not known", hint=f"one of {', '.join(allowed)}")
    for module in layout.recompute_modules:
        if module not in MODULES:
            raise BadRequest(f"no module '{module}' can be recomputed", hint=f"one of {', '.join(MODULES)}")
    if layout.optimizer not in OPTIMIZERS:
        raise BadRequest(f"optimizer '{layout.optimizer}' is not known", hint=f"one of {', '.join(OPTIMIZERS)}")


def _check_model_axes(layout: Layout, model: Model) -> None:
    if model.heads % layout.tp:
        raise BadRequest(
            f"TP {layout.tp} does not divide the {model.heads} heads of {model.name}",
            hint=f"the nearest TP that does is {nearest_divisor(model.heads, layout.tp)}",
        )
    if layout.pp * layout.virtual_stages > model.layers:
        most = model.layers // layout.virtual_stages
        raise BadRequest(
            f"PP {layout.pp} x {layout.virtual_stages} virtual stages is more than the {model.layers} layers",
            hint=f"the nearest PP is {max(most, 1)}",
        )
    if layout.ep > 1 and not model.experts:
        raise BadRequest(f"{model.name} has no experts to spread over EP {layout.ep}", hint="EP 1")
    if layout.ep > 1 and model.experts % layout.ep:
        raise BadRequest(
            f"EP {layout.ep} does not divide the {model.experts} experts of {model.name}",
            hint=f"the nearest EP that does is {nearest_divisor(model.experts, layout.ep)}",
        )
