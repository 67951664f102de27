"""bf16 autocast: products and convolutions in bfloat16, the parameters stay float32.

Where the job has contexts of its own around its models that leave types as they are (switched off, or with dtype float32),
they are switched to bfloat16, as their author would do it. Where it has none, its whole loop is put into one.
"""

from __future__ import annotations

import sys
from typing import Any, Callable, Optional

from stallwise.experiment.casts import site_of
from stallwise.experiment.change import Change, Undo


class Bf16Autocast(Change):
    """Models under `torch.autocast(device, torch.bfloat16)`."""

    name = "bf16-autocast"
    title = "bfloat16 autocast"
    causes = ("tensor-cores-unused", "precision-headroom")
    usual = 0.7
    needs = "with torch.autocast(device, torch.bfloat16): around forward and loss"
    risk = "products with 8 bits of mantissa; check the loss"
    instead_of = ("tf32",)

    def refuses(self, scene: Any) -> Optional[str]:
        if not scene.roots:
            return "no model was called"
        if scene.autocast:
            return "autocast to a narrower type is on already"
        if not scene.float32():
            return "the models are not in float32"
        if scene.device == "cuda" and not scene.torch.cuda.is_bf16_supported():
            return "this GPU has no bfloat16"
        return None

    def expects(self, scene: Any) -> float:
        return self.usual if scene.device != "cpu" else 0.1  # few CPUs have products in bfloat16

    def begin(self, scene: Any, undo: Undo) -> None:
        """A failure undoes in the middle of a step, where contexts that are still open put back what they found, which is ours.

        At the border after it the settings are what they were before the trial.
        """
        torch, device = scene.torch, scene.device
        enabled, dtype = torch.is_autocast_enabled(device), torch.get_autocast_dtype(device)

        def as_before() -> None:
            torch.set_autocast_enabled(device, enabled)
            torch.set_autocast_dtype(device, dtype)

        undo.later(as_before)

    def apply(self, scene: Any, undo: Undo) -> None:
        if scene.casts.idle:
            undo.wrap(scene.torch.amp.autocast_mode.autocast, "__enter__", self._switched_on(scene))
        else:
            self._around_everything(scene, undo)

    def _switched_on(self, scene: Any) -> Callable[..., Any]:
        def wrap(call: Callable[..., Any]) -> Callable[..., Any]:
            def __enter__(context: Any) -> Any:
                if site_of(sys._getframe(1)) not in scene.casts.idle:
                    return call(context)
                own = context._enabled, context.fast_dtype
                context._enabled, context.fast_dtype = True, scene.torch.bfloat16
                try:
                    return call(context)
                finally:
                    context._enabled, context.fast_dtype = own

            return __enter__

        return wrap

    def _around_everything(self, scene: Any, undo: Undo) -> None:
        torch, device = scene.torch, scene.device
        context = torch.autocast(device, torch.bfloat16)
        context.__enter__()
        undo.later(lambda: context.__exit__(None, None, None))

        def outside(call: Callable[..., Any]) -> Callable[..., Any]:
            """A backward pass takes the types of its forward pass, as it does where one writes the context by hand."""

            def backward(*args: Any, **kwargs: Any) -> Any:
                with torch.autocast(device, enabled=False):
                    return call(*args, **kwargs)

            return backward

        undo.wrap(torch.Tensor, "backward", outside)
        undo.wrap(torch.autograd, "backward", outside)

    def on_step(self, scene: Any) -> None:
        """A context that ends with the forward pass forgets its casts of the weights; this one is told to, every step."""
        scene.torch.clear_autocast_cache()
