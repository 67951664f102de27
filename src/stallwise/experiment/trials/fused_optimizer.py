"""A fused optimizer: one kernel for all parameters instead of several."""

from __future__ import annotations

from typing import Any, Optional

from stallwise.experiment.change import Undo
from stallwise.experiment.trials._optimizer_ways import OptimizerWay, optimizers_with, set_way, walks


class FusedOptimizer(OptimizerWay):
    """`fused=True` in PyTorch's own optimizers."""

    name = "fused-optimizer"
    title = "a fused optimizer"
    needs = "fused=True when the optimizer is made"
    risk = "other rounding"
    instead_of = ("foreach-optimizer",)

    def refuses(self, scene: Any) -> Optional[str]:
        known = optimizers_with(scene, "fused")
        if not known:
            return "no optimizer of PyTorch's own that can be fused has stepped"
        if all(walks(o, "fused") for o in known):
            return "it is fused already"
        if scene.captured_graphs:
            return "CUDA graphs have the optimizer's kernels in them"
        if any(not p.is_floating_point() or p.is_sparse for o in known for g in o.param_groups for p in g["params"]):
            return "fused kernels need dense floating-point parameters"
        return None

    def apply(self, scene: Any, undo: Undo) -> None:
        for optimizer in optimizers_with(scene, "fused"):
            set_way(scene, optimizer, undo, fused=True, foreach=False)
