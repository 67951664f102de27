"""A microbatch of twice the size: two batches of the loader as one, counted by the work done."""

from __future__ import annotations

from typing import Any, Callable, Optional

from stallwise.experiment.change import Change, Undo

ROOM = 0.55  # of the device's memory may be in use: activations double, weights and optimizer state do not


class DoubleMicrobatch(Change):
    """Each batch is two, joined along their first dimension; a step does twice the work."""

    name = "double-microbatch"
    title = "twice the microbatch, by work done"
    keeps_loss = False
    usual = 0.1
    causes = ("small-microbatch", "per-gpu-batch-too-small", "launch-bound")
    needs = "a larger batch size, and the learning rate that goes with it"
    risk = "more memory; another number of updates, so other training"
    instead_of = ("last-batch-again", "double-batch")
    work_ratio = 2.0

    def refuses(self, scene: Any) -> Optional[str]:
        if not scene.iterators:
            return "no DataLoader of PyTorch gave a batch"
        if scene.compiled():
            return "the models are compiled for the batch they have"
        used, total = scene.memory()
        if total and used > ROOM * total:
            return "no room: the peak is %.0f%% of the device's memory" % (100 * used / total)
        return None

    def settle_steps(self, scene: Any) -> int:
        return 2

    def apply(self, scene: Any, undo: Undo) -> None:
        torch = scene.torch

        def wrap(call: Callable[..., Any]) -> Callable[..., Any]:
            def __next__(iterator: Any) -> Any:
                first = call(iterator)
                try:
                    second = call(iterator)
                except StopIteration:
                    second = first  # the last batch of an epoch: the work is the same
                return joined(torch, first, second)

            return __next__

        for kind in scene.iterator_classes():
            undo.wrap(kind, "__next__", wrap)


def joined(torch: Any, one: Any, other: Any) -> Any:
    """Two batches as one, whatever their shape is made of."""
    if torch.is_tensor(one):
        return torch.cat([one, other]) if one.dim() else one
    if isinstance(one, dict) or hasattr(one, "keys"):
        return type(one)({k: joined(torch, one[k], other[k]) for k in one})
    if isinstance(one, tuple) and hasattr(one, "_fields"):
        return type(one)(*(joined(torch, a, b) for a, b in zip(one, other)))
    if isinstance(one, (list, tuple)):
        tensors = any(torch.is_tensor(v) or isinstance(v, (list, tuple, dict)) for v in one)
        return type(one)(joined(torch, a, b) for a, b in zip(one, other)) if tensors else type(one)((*one, *other))
    return one
