"""What the parts of a step and the tensors of a layer are called on screens; in JSON they keep their keys."""

from __future__ import annotations

from stallwise.physics.costs.activations import AFTER_ACTIVATION, BEFORE_ACTIVATION

NAMES = {
    "products": "GEMM", "vector": "elementwise", BEFORE_ACTIVATION: "MLP up-projection", AFTER_ACTIVATION: "MLP activation",
    "mlp input": "MLP input", "mlp norm input": "MLP norm input", "qkv input": "QKV input", "gathered": "gathered weights",
}  # fmt: skip


def part_name(key: str) -> str:
    """The field's word, or the key itself without underscores."""
    for experts in ("experts", "shared expert"):
        if key.startswith(f"{experts} "):
            return f"{experts}: {part_name(key.removeprefix(f'{experts} '))}"
    return NAMES.get(key, key.replace("_", " "))
