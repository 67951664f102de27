"""Hooks that gather what enters each linear layer of a PyTorch model: for range and precision studies.

Nothing of stallwise is imported here and torch is found at run time, so the file can be copied beside a model.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import Any

MAX_ROWS = 2048  # rows kept of a layer's input: enough for tails of one in a million elements at common widths
KINDS = ("Linear", "Conv1d", "Conv2d", "NonDynamicallyQuantizableLinear")


class LayerInputs:
    """Inputs by layer name, as float32 rows on the CPU, with the largest absolute value over everything seen."""

    def __init__(self, max_rows: int = MAX_ROWS) -> None:
        self.max_rows = max_rows
        self.rows: dict[str, Any] = {}
        self.amax: dict[str, float] = {}
        self.seen: dict[str, int] = {}

    def take(self, name: str, value: Any) -> None:
        """Keeps rows spread over the batch and the largest value of all of it."""
        import torch

        with torch.no_grad():
            flat = value.detach().reshape(-1, value.shape[-1])
            largest = float(flat.abs().amax().item()) if flat.numel() else 0.0
            self.amax[name] = max(self.amax.get(name, 0.0), largest)
            self.seen[name] = self.seen.get(name, 0) + int(flat.shape[0])
            if name not in self.rows:
                step = max(1, -(-flat.shape[0] // self.max_rows))
                kept = flat[::step]
                # The row of the largest value is always kept: clipping is about the extremes.
                top = flat[flat.abs().amax(dim=-1).argmax()].unsqueeze(0)
                self.rows[name] = torch.cat([kept, top]).to(torch.float32).cpu()


@contextmanager
def watch(model: Any, inputs: LayerInputs) -> Any:
    """While inside, every linear layer of the model reports its input."""
    handles = []

    def hook(name: str) -> Any:
        def before(module: Any, args: tuple[Any, ...]) -> None:
            del module
            if args and hasattr(args[0], "detach") and args[0].is_floating_point():
                inputs.take(name, args[0])

        return before

    try:
        for name, module in model.named_modules():
            if type(module).__name__ in KINDS or hasattr(module, "in_features"):
                handles.append(module.register_forward_pre_hook(hook(name)))
        yield inputs
    finally:
        for handle in handles:
            handle.remove()


def run(model: Any, batch: Any) -> LayerInputs:
    """One forward pass without gradients, in evaluation mode."""
    import torch

    found = LayerInputs()
    was_training = model.training
    model.eval()
    try:
        with torch.no_grad(), watch(model, found):
            if isinstance(batch, dict):
                model(**batch)
            elif isinstance(batch, (tuple, list)):
                model(*batch)
            else:
                model(batch)
    finally:
        model.train(was_training)
    return found
