"""torch.compile with CUDA graphs: compiled, and launched as a whole."""

from __future__ import annotations

from typing import Any, Optional

from stallwise.experiment.change import Undo
from stallwise.experiment.trials.compile_models import Compile


class CompileGraphs(Compile):
    """`torch.compile(mode="reduce-overhead")`."""

    name = "compile-graphs"
    title = "torch.compile with CUDA graphs"
    causes = ("launch-bound", "elementwise-unfused")
    usual = 0.25
    needs = 'model = torch.compile(model, mode="reduce-overhead")'
    risk = "more memory; outputs are overwritten by the next call; shapes must not change"
    instead_of = ("compile",)
    settings = {"mode": "reduce-overhead"}

    def refuses(self, scene: Any) -> Optional[str]:
        if scene.device != "cuda":
            return "CUDA graphs run on GPUs"
        return super().refuses(scene)

    def apply(self, scene: Any, undo: Undo) -> None:
        super().apply(scene, undo)
        scene.torch.compiler.cudagraph_mark_step_begin()

    def on_step(self, scene: Any) -> None:
        scene.torch.compiler.cudagraph_mark_step_begin()
