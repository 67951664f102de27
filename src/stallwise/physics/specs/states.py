"""In which types a job keeps and sends its weights, gradients and optimizer states: one rule for plans and published runs."""

from __future__ import annotations

from dataclasses import dataclass

HALF, SINGLE = 2.0, 4.0
PARAM_DTYPES = ("bf16", "fp8", "fp32")
GRAD_DTYPES = ("fp32", "bf16")
# NF4: half a byte and an 8-bit scale per block of 64 with one of its own per 256 blocks (Dettmers 2023, section 3).
FROZEN_BYTES = {"bf16": 2.0, "fp8": 1.0, "nf4": 0.5 + 1 / 64 + 4 / (64 * 256)}
SENT_IN_HALF = ("deepspeed", "paddle", "jax", "other")  # frameworks that reduce gradients as the backward made them


@dataclass(frozen=True)
class States:
    """What is said about types; empty: as the framework keeps them."""

    pure: bool = False  # everything in 16 bit, no fp32 copy
    amp: bool = False  # fp32 weights, cast at every use (torch.autocast)
    param: str = ""  # one of PARAM_DTYPES: weights between steps; fp8: Transformer Engine's primary weights
    grad: str = ""  # one of GRAD_DTYPES, kept and sent
    frozen: str = ""  # one of FROZEN_BYTES: weights that adapters stand beside


@dataclass(frozen=True)
class StateTypes:
    """The same in bytes."""

    style: str  # megatron, fsdp, ddp: who keeps what for how long
    weight_bytes: float
    grad_bytes: float
    reduce_bytes: float  # gradients as sent
    gather_bytes: float  # weights as sent
    frozen_bytes: float
    master: bool


def state_types(states: States, framework: str, precision: str, zero: int) -> StateTypes:
    """How this framework keeps states under a ZeRO stage."""
    own = framework == "pytorch"
    fsdp = own and zero >= 3
    pure, whole = states.pure, precision == "fp32" or states.param == "fp32"
    # FSDP shards fp32 weights and casts what it gathers; others keep 16-bit weights beside an fp32 master copy.
    weight = SINGLE if whole or states.amp or (fsdp and not pure) else HALF
    weight = 1.0 if states.param == "fp8" and not fsdp else weight
    half_kept = pure or (framework == "deepspeed" and zero >= 2) or states.grad == "bf16"
    half_sent = half_kept or (not states.grad and (framework in SENT_IN_HALF or precision == "fp16"))
    return StateTypes(
        style="fsdp" if zero >= 3 else "ddp" if own else "megatron",
        weight_bytes=weight,
        grad_bytes=HALF if half_kept else SINGLE,
        reduce_bytes=HALF if half_sent else SINGLE,
        gather_bytes=1.0 if states.param == "fp8" else SINGLE if precision == "fp32" else HALF,
        frozen_bytes=FROZEN_BYTES[states.frozen or ("fp8" if states.param == "fp8" else "bf16")],
        master=not (pure or whole or fsdp or states.amp),
    )
