"""cudnn.benchmark: the fastest convolution is looked for once for every shape."""

from __future__ import annotations

from typing import Any, Optional

from stallwise.experiment.change import Change, Undo


class CudnnBenchmark(Change):
    """`torch.backends.cudnn.benchmark = True`."""

    name = "cudnn-benchmark"
    title = "cuDNN's fastest convolutions"
    usual = 0.1
    needs = "torch.backends.cudnn.benchmark = True"
    risk = "slower where shapes keep changing; other rounding"

    def refuses(self, scene: Any) -> Optional[str]:
        if scene.device != "cuda":
            return "cuDNN runs on GPUs"
        if not any(type(m).__name__.startswith("Conv") for m in scene.modules()):
            return "the models have no convolution"
        return "it is on already" if scene.torch.backends.cudnn.benchmark else None

    def apply(self, scene: Any, undo: Undo) -> None:
        undo.set(scene.torch.backends.cudnn, "benchmark", True)
