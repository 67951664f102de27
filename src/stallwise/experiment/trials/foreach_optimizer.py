"""An optimizer that takes its parameters in groups instead of one by one."""

from __future__ import annotations

from typing import Any, Optional

from stallwise.experiment.change import Undo
from stallwise.experiment.trials._optimizer_ways import OptimizerWay, optimizers_with, set_way, walks


class ForeachOptimizer(OptimizerWay):
    """`foreach=True` in PyTorch's own optimizers."""

    name = "foreach-optimizer"
    title = "an optimizer over groups of parameters"
    needs = "foreach=True when the optimizer is made"
    risk = "a few more temporary tensors"
    instead_of = ("fused-optimizer",)

    def refuses(self, scene: Any) -> Optional[str]:
        known = optimizers_with(scene, "foreach")
        if not known:
            return "no optimizer of PyTorch's own that can do so has stepped"
        if any(walks(o, "fused") for o in known):
            return "it is fused already"
        if all(walks(o, "foreach") for o in known):
            return "it does so already"
        if scene.device == "cuda" and all(g.get("foreach") is None for o in known for g in o.param_groups):
            return "on GPUs it does so by itself"
        if scene.captured_graphs:
            return "CUDA graphs have the optimizer's kernels in them"
        return None

    def apply(self, scene: Any, undo: Undo) -> None:
        for optimizer in optimizers_with(scene, "foreach"):
            set_way(scene, optimizer, undo, foreach=True)
