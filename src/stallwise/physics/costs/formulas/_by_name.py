"""A card, a model or a size in the place of the numbers that a formula takes: gpu=h100, model=llama-3-70b, params=70B."""

from __future__ import annotations

from collections.abc import Collection

from stallwise.errors import BadRequest
from stallwise.physics.costs.envelope import STATE_BYTES_PER_PARAMETER
from stallwise.physics.specs.hardware import gpu
from stallwise.physics.specs.model import find_model
from stallwise.units import Unit, parse

NAMES = ("gpu", "model", "params")


def inputs_named(name: str, text: str, known: Collection[str]) -> dict[str, float]:
    """What the formula takes of a named thing; nothing where the formula has no use for it."""
    if name == "gpu":
        card = gpu(text)
        inputs = {
            "peak_flop_per_s": card.peak("bf16"), "byte_per_s": card.bandwidth_byte_per_s, "memory_bytes": float(card.memory_bytes),
        }  # fmt: skip
    elif name == "model":
        model = find_model(text)
        inputs = {
            "params": float(model.parameters().total), "layers": float(model.layers), "hidden": float(model.hidden),
            "heads": float(model.heads), "kv_heads": float(model.kv_heads), "head_dim": float(model.head_dim),
            "vocab": float(model.vocab),
            **_of_size(float(model.parameters().total)),
        }  # fmt: skip
    else:
        inputs = _of_size(parse(text, Unit.COUNT))
    found = {key: value for key, value in inputs.items() if key in known}
    if not found:
        raise BadRequest(f"the formula has no use for a {name}", hint="it takes " + ", ".join(known))
    return found


def _of_size(params: float) -> dict[str, float]:
    """Weights of two bytes; states of mixed-precision Adam."""
    return {
        "state_bytes": STATE_BYTES_PER_PARAMETER * params,
        "weight_bytes": 2.0 * params,
        "weights_bytes": 2.0 * params,
    }
