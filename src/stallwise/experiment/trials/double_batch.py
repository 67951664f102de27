"""Inference with twice the batch: each model is called with its inputs twice over, counted by the work done."""

from __future__ import annotations

from typing import Any, Optional

from stallwise.experiment.change import Change, Undo
from stallwise.experiment.guard import WAY, forget
from stallwise.experiment.trials.double_microbatch import joined

ROOM = 0.55  # of the device's memory may be in use


class DoubleBatch(Change):
    """The first half of what comes out is the answer."""

    name = "double-batch"
    title = "inference with twice the batch, by work done"
    keeps_loss = False
    usual = 0.2
    causes = ("batch-cap-too-low", "launch-bound", "decode-bandwidth-bound")
    needs = "a larger batch"
    risk = "each answer comes later; more memory"
    instead_of = ("double-microbatch", "compile", "compile-graphs")
    work_ratio = 2.0

    def refuses(self, scene: Any) -> Optional[str]:
        if scene.trains:
            return "the job trains: the loader's batches are doubled instead"
        if scene.stateful:
            return "the models are handed a cache, which holds its own batch"
        if scene.compiled():
            return "the models are compiled for the batch they have"
        if not scene.roots or not all(_batched(scene.inputs.get(id(root), [])) for root in scene.roots):
            return "inputs of the models do not share a first dimension"
        used, total = scene.memory()
        if total and used > ROOM * total:
            return "no room: the peak is %.0f%% of the device's memory" % (100 * used / total)
        return None

    def apply(self, scene: Any, undo: Undo) -> None:
        for root in scene.roots:
            vars(root)[WAY] = _doubled(scene.torch, root)
            undo.later(forget(root, WAY))


def _batched(shapes: Any) -> bool:
    return bool(shapes) and len({shape[0] for shape, _, _ in shapes if shape}) == 1


def _doubled(torch: Any, root: Any) -> Any:
    def twice(*args: Any, **kwargs: Any) -> Any:
        first = [a for a in (*args, *kwargs.values()) if torch.is_tensor(a) and a.dim()]
        count = first[0].shape[0]
        args = tuple(joined(torch, a, a) if torch.is_tensor(a) else a for a in args)
        kwargs = {k: joined(torch, v, v) if torch.is_tensor(v) else v for k, v in kwargs.items()}
        return _half(torch, root._call_impl(*args, **kwargs), count)

    return twice


def _half(torch: Any, value: Any, count: int) -> Any:
    if torch.is_tensor(value):
        return value[:count] if value.dim() and value.shape[0] == 2 * count else value
    if hasattr(value, "keys"):
        return type(value)(**{k: _half(torch, value[k], count) for k in value})
    if isinstance(value, (list, tuple)) and not hasattr(value, "_fields"):
        return type(value)(_half(torch, v, count) for v in value)
    return value
