"""No activation checkpointing: activations are kept instead of computed twice, where there is room for them."""

from __future__ import annotations

import sys
from typing import Any, Callable, Optional

from stallwise.instrument.experiment.change import Change, Undo, replaced_by_user

FUNCTION = "torch.utils.checkpoint.checkpoint"
ROOM = 0.5  # of the device: kept activations are usually several times what recomputing leaves of them


class NoRecompute(Change):
    """`torch.utils.checkpoint.checkpoint(f, x)` is `f(x)`."""

    name = "no-recompute"
    title = "no activation checkpointing"
    causes = ("recompute-unneeded",)
    removes = True
    needs = "checkpoint fewer layers, or none"
    risk = "more memory for activations"
    watch = (FUNCTION,)

    def refuses(self, scene: Any) -> Optional[str]:
        if not scene.calls(FUNCTION) and not list(_switched(scene)):
            return "no activation checkpointing is used"
        if replaced_by_user(FUNCTION):
            return "your code has replaced %s" % FUNCTION
        used, total = scene.memory()
        if total and used > ROOM * total:
            return "no room: the peak is %.0f%% of the device's memory" % (100 * used / total)
        return None

    def apply(self, scene: Any, undo: Undo) -> None:
        module = sys.modules.get("torch.utils.checkpoint")

        def wrap(call: Callable[..., Any]) -> Callable[..., Any]:
            def checkpoint(function: Any, *args: Any, **kwargs: Any) -> Any:
                for ours in (
                    "use_reentrant",
                    "preserve_rng_state",
                    "context_fn",
                    "determinism_check",
                    "debug",
                    "early_stop",
                ):
                    kwargs.pop(ours, None)
                return function(*args, **kwargs)

            return checkpoint

        if module is not None:
            original = module.checkpoint
            others = [m for m in list(sys.modules.values()) if m is not module and _holds(m, original)]
            undo.wrap(module, "checkpoint", wrap, also=tuple(others))
        for part in _switched(scene):
            undo.put(part, "gradient_checkpointing", False)


def _holds(module: Any, function: Any) -> bool:
    return getattr(module, "__dict__", {}).get("checkpoint") is function


def _switched(scene: Any) -> Any:
    """Modules of transformers that have it as a switch."""
    return (m for m in scene.modules() if vars(m).get("gradient_checkpointing") is True)
