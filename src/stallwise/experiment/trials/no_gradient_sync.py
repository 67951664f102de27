"""No gradient sync: all ranks keep their gradients to themselves, together and for the same steps."""

from __future__ import annotations

from typing import Any, List, Optional

from stallwise.experiment.change import Change, Undo
from stallwise.recorder import schema

SWITCH = "require_backward_grad_sync"


class NoGradientSync(Change):
    """What `no_sync()` of DistributedDataParallel does, whatever the job's own loop sets meanwhile."""

    name = "no-gradient-sync"
    title = "no gradient sync"
    keeps_loss = False
    usual = 0.3
    causes = ("exposed-communication", "bucket-too-small")
    removes = True
    needs = "less to send or a faster way: bf16 gradients, larger buckets, accumulation, a faster network"
    risk = "an upper bound: training needs the sync"

    def refuses(self, scene: Any) -> Optional[str]:
        if not self._wrapped(scene):
            return "no DistributedDataParallel model was called"
        return None

    def expects(self, scene: Any) -> float:
        return float(scene.shares.get(schema.GRADIENT_SYNC, self.usual))

    def _wrapped(self, scene: Any) -> List[Any]:
        return [m for m in scene.modules() if SWITCH in vars(m) and hasattr(type(m), "no_sync")]

    def apply(self, scene: Any, undo: Undo) -> None:
        def get(module: Any) -> bool:
            return False

        def keep(module: Any, value: bool) -> None:
            vars(module)[SWITCH] = value  # what the job's own loop sets holds again afterwards

        for kind in {type(m) for m in self._wrapped(scene)}:
            undo.put(kind, SWITCH, property(get, keep))
