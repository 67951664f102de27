"""torch.compile: the models as compiled, everything around them as it is."""

from __future__ import annotations

from typing import Any, Dict, Optional, Tuple

from stallwise.experiment.change import Change, Undo
from stallwise.experiment.guard import WAY, forget


class Compile(Change):
    """Every model that the job calls goes through `torch.compile`."""

    name = "compile"
    title = "torch.compile"
    causes: Tuple[str, ...] = ("elementwise-unfused", "launch-bound", "attention-materialized")
    usual = 0.2
    needs = "model = torch.compile(model)"
    risk = "compiles again when shapes change; other rounding"
    instead_of = ("compile-graphs",)
    costly = True
    settings: Dict[str, Any] = {}

    def __init__(self) -> None:
        self._ways: Dict[int, Any] = {}

    def refuses(self, scene: Any) -> Optional[str]:
        torch = scene.torch
        if not hasattr(torch, "compile"):
            return "this PyTorch cannot compile"
        if not scene.roots:
            return "no model was called"
        if scene.compiled():
            return "the models are compiled already"
        if any(isinstance(m, torch.jit.ScriptModule) for m in scene.modules()):
            return "the models are scripted"
        return None

    def apply(self, scene: Any, undo: Undo) -> None:
        for root in scene.roots:
            if id(root) not in self._ways:
                self._ways[id(root)] = scene.torch.compile(_call_of(root), **self.settings)
            vars(root)[WAY] = self._ways[id(root)]
            undo.later(forget(root, WAY))


def _call_of(root: Any) -> Any:
    """A function of ours around the call: a compiler leaves functions of PyTorch's own containers as they are, silently."""

    def call(*args: Any, **kwargs: Any) -> Any:
        return root._call_impl(*args, **kwargs)

    return call
