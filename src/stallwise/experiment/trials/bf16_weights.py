"""Inference with bfloat16 weights: half the bytes to read."""

from __future__ import annotations

import weakref
from typing import Any, Optional

from stallwise.experiment.change import Change, Undo

ROOM = 0.6  # of the device's memory may be in use: the float32 weights are kept for the way back


class Bf16Weights(Change):
    """Weights and inputs in bfloat16, answers in float32 as before."""

    name = "bf16-weights"
    title = "inference with bfloat16 weights"
    causes = ("decode-bandwidth-bound", "tensor-cores-unused", "precision-headroom")
    usual = 0.4
    needs = "model.to(torch.bfloat16)"
    risk = "8 bits of mantissa; check the answers"
    instead_of = ("bf16-autocast", "tf32")

    def refuses(self, scene: Any) -> Optional[str]:
        if scene.trains:
            return "the job trains: see bf16-autocast"
        if not scene.roots:
            return "no model was called"
        if not scene.float32():
            return "the models are not in float32"
        if scene.stateful:
            return "the models are handed a cache, which holds its own type"
        if scene.compiled() or scene.captured_graphs:
            return "compiled models hold their weights' types"
        used, total = scene.memory()
        return "no room for a second set of weights" if total and used > ROOM * total else None

    def apply(self, scene: Any, undo: Undo) -> None:
        torch = scene.torch
        for module in scene.modules():
            for tensor in (*module._parameters.values(), *module._buffers.values()):
                if tensor is not None and tensor.dtype == torch.float32:
                    undo.later(_data_back(tensor, tensor.data))
                    tensor.data = tensor.data.to(torch.bfloat16)
        for root in scene.roots:
            before = root.register_forward_pre_hook(_cast_inputs(torch), with_kwargs=True)
            after = root.register_forward_hook(_cast_outputs(torch))
            undo.later(before.remove)
            undo.later(after.remove)


def _data_back(tensor: Any, data: Any) -> Any:
    held = weakref.ref(tensor)

    def back() -> None:
        tensor = held()
        if tensor is not None:
            tensor.data = data

    return back


def _cast_inputs(torch: Any) -> Any:
    def cast(value: Any) -> Any:
        return value.to(torch.bfloat16) if torch.is_tensor(value) and value.dtype == torch.float32 else value

    def hook(module: Any, args: Any, kwargs: Any) -> Any:
        return tuple(cast(a) for a in args), {k: cast(v) for k, v in kwargs.items()}

    return hook


def _cast_outputs(torch: Any) -> Any:
    def hook(module: Any, args: Any, output: Any) -> Any:
        if torch.is_tensor(output) and output.dtype == torch.bfloat16:
            return output.to(torch.float32)
        return output

    return hook
