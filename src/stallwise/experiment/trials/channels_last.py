"""channels_last: pictures and convolution weights with their channels innermost, as tensor cores want them."""

from __future__ import annotations

import weakref
from typing import Any, Optional

from stallwise.experiment.change import Change, Undo


class ChannelsLast(Change):
    """Weights, optimizer state and inputs in `torch.channels_last`; undone, the strides are what they were."""

    name = "channels-last"
    title = "channels_last weights and inputs"
    causes = ("layout-copies",)
    usual = 0.2
    needs = "model.to(memory_format=torch.channels_last), and the same for the inputs"
    risk = "other rounding; layers that view their input must be written for it"

    def refuses(self, scene: Any) -> Optional[str]:
        torch = scene.torch
        if scene.compiled():
            return "the models are compiled, and the compiler has chosen the layout"
        if scene.captured_graphs:
            return "CUDA graphs hold the addresses of the weights"
        convolutions = [m for m in scene.modules() if isinstance(m, torch.nn.Conv2d)]
        if not convolutions:
            return "the models have no two-dimensional convolution"
        if all(m.weight.is_contiguous(memory_format=torch.channels_last) for m in convolutions):
            return "it is on already"
        return None

    def apply(self, scene: Any, undo: Undo) -> None:
        torch = scene.torch
        tensors = [p for p in scene.parameters() if p.dim() == 4]
        wanted = {id(p) for p in tensors}
        for optimizer in scene.optimizers:
            for parameter, state in optimizer.state.items():
                if id(parameter) in wanted:
                    tensors += [v for v in state.values() if torch.is_tensor(v) and v.shape == parameter.shape]
        with torch.no_grad():
            for tensor in tensors:
                undo.later(_stride_back(torch, tensor, tensor.stride()))
                tensor.data = tensor.data.contiguous(memory_format=torch.channels_last)
        for root in scene.roots:
            handle = root.register_forward_pre_hook(_convert(torch), with_kwargs=True)
            undo.later(handle.remove)


def _convert(torch: Any) -> Any:
    def convert(module: Any, args: Any, kwargs: Any) -> Any:
        def other(value: Any) -> Any:
            if torch.is_tensor(value) and value.dim() == 4:
                return value.contiguous(memory_format=torch.channels_last)
            return value

        return tuple(other(a) for a in args), {k: other(v) for k, v in kwargs.items()}

    return convert


def _stride_back(torch: Any, tensor: Any, stride: Any) -> Any:
    held = weakref.ref(tensor)

    def back() -> None:
        tensor = held()
        if tensor is not None and tensor.stride() != stride:
            other = torch.empty_strided(tensor.shape, stride, dtype=tensor.dtype, device=tensor.device)
            with torch.no_grad():
                other.copy_(tensor.data)
                tensor.data = other

    return back
