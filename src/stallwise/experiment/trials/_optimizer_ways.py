"""How PyTorch's optimizers walk over their parameters: one by one, in groups, or in one kernel."""

from __future__ import annotations

from typing import Any, List, Optional

from stallwise.experiment.change import Change, Undo
from stallwise.recorder import schema

OF_ITS_STAGE = 0.5  # what one kernel in the place of many saves of the optimizer's time


class OptimizerWay(Change):
    """An optimizer that goes another way over its parameters."""

    usual = 0.05
    causes = ("optimizer-unfused",)

    def expects(self, scene: Any) -> float:
        share = scene.shares.get(schema.OPTIMIZER)
        return self.usual if share is None else OF_ITS_STAGE * float(share)


def optimizers_with(scene: Any, way: str) -> List[Any]:
    """Optimizers of PyTorch's own that know this way."""
    return [
        o
        for o in scene.optimizers
        if way in o.defaults and type(o).__module__.startswith("torch.optim") and not o.defaults.get("differentiable")
    ]


def walks(optimizer: Any, way: str) -> bool:
    """It goes this way already in every group."""
    return all(bool(group.get(way)) for group in optimizer.param_groups)


def set_way(scene: Any, optimizer: Any, undo: Undo, **ways: Optional[bool]) -> None:
    """Chooses the way; step counts move to where the kernels want them and come back with what they have become."""
    torch = scene.torch
    for group in optimizer.param_groups:
        before = {way: group.get(way) for way in ways}
        undo.later(lambda group=group, before=before: group.update(before))  # type: ignore[misc]
        group.update(ways)
    if not ways.get("fused"):
        return
    for parameter, state in optimizer.state.items():
        own = state.get("step")
        if torch.is_tensor(own) and own.device != parameter.device:
            state["step"] = own.to(parameter.device)
            undo.later(_step_back(state, own))


def _step_back(state: Any, own: Any) -> Any:
    def back() -> None:
        own.copy_(state["step"])
        state["step"] = own

    return back
