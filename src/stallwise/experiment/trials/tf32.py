"""TF32: float32 products on the tensor cores, inputs rounded to ten bits of mantissa."""

from __future__ import annotations

from typing import Any, Optional

from stallwise.experiment.change import Change, Undo

AMPERE = (8, 0)


class Tf32(Change):
    """`torch.set_float32_matmul_precision("high")`."""

    name = "tf32"
    title = "TF32 for float32 products"
    usual = 0.6
    causes = ("tensor-cores-unused", "precision-headroom")
    needs = 'torch.set_float32_matmul_precision("high")'
    risk = "products with 10 bits of mantissa instead of 23"
    instead_of = ("bf16-autocast",)

    def refuses(self, scene: Any) -> Optional[str]:
        torch = scene.torch
        if scene.device != "cuda":
            return "TF32 is a format of NVIDIA's tensor cores"
        if torch.version.hip is None and torch.cuda.get_device_capability() < AMPERE:
            return "this GPU has no TF32"
        if torch.get_float32_matmul_precision() != "highest":
            return "it is on already"
        if not scene.float32():
            return "the models are not in float32"
        return "the models run under autocast" if scene.autocast else None

    def apply(self, scene: Any, undo: Undo) -> None:
        torch = scene.torch
        before = torch.get_float32_matmul_precision()
        undo.later(lambda: torch.set_float32_matmul_precision(before))
        torch.set_float32_matmul_precision("high")
