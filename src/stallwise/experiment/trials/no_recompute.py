"""No activation checkpointing: activations are kept instead of computed twice, where there is room for them.

Jobs hold `checkpoint` under names of their own (`from torch.utils.checkpoint import checkpoint`), and so do libraries. All of them
come to the same two places inside of PyTorch's module, one for each way to recompute: there it is counted and left out.
"""

from __future__ import annotations

import sys
from typing import Any, Iterator, Optional

from stallwise.experiment.change import Change, Undo, replaced_by_user

MODULE = "torch.utils.checkpoint"
SAVES, REENTERS = "_checkpoint_without_reentrant_generator", "CheckpointFunction"
# Each way calls one of these once for every part that is recomputed.
CALLED = tuple("%s.%s" % (MODULE, name) for name in (SAVES, "check_backward_validity"))
ROOM = 0.5  # of the device: kept activations are usually several times what recomputing leaves of them


class NoRecompute(Change):
    """`checkpoint(f, x)` is `f(x)`."""

    name = "no-recompute"
    title = "no activation checkpointing"
    usual = 0.3
    causes = ("recompute-unneeded",)
    removes = True
    needs = "checkpoint fewer layers, or none"
    risk = "more memory for activations"
    watch = CALLED

    def refuses(self, scene: Any) -> Optional[str]:
        for function in ("%s.checkpoint" % MODULE, *CALLED):
            if replaced_by_user(function):
                return "your code has replaced %s" % function
        if not any(scene.calls(function) for function in CALLED):
            return "no activation checkpointing is used"
        used, total = scene.memory()
        if total and used > ROOM * total:
            return "no room: the peak is %.0f%% of the device's memory" % (100 * used / total)
        return None

    def apply(self, scene: Any, undo: Undo) -> None:
        module = sys.modules[MODULE]
        undo.put(module, SAVES, _keeps)
        undo.put(module, REENTERS, _Calls)


def _keeps(*args: Any, **kwargs: Any) -> Iterator[None]:
    """Around a part of the model: nothing before it, nothing after."""
    yield


class _Calls:
    """In the place of the function that computes again in the backward pass."""

    @staticmethod
    def apply(function: Any, preserve_rng_state: bool, *args: Any) -> Any:
        return function(*args)
