"""Pinned, non-blocking copies: batches go to the device beside the host's own work."""

from __future__ import annotations

from typing import Any, Callable, Optional

from stallwise.experiment.change import Change, Undo, replaced_by_user

FUNCTIONS = ("torch.Tensor.to", "torch.Tensor.cuda")


class PinnedCopies(Change):
    """Host tensors are pinned on their way to the device. The pinning itself is paid here; a loader's own thread hides it."""

    name = "pinned-copies"
    title = "pinned, non-blocking copies to the device"
    usual = 0.1
    causes = ("h2d-copy-exposed",)
    alters = False
    needs = "DataLoader(pin_memory=True) and .to(device, non_blocking=True)"
    risk = "none; pinned host memory"

    def refuses(self, scene: Any) -> Optional[str]:
        if scene.device != "cuda":
            return "nothing is copied to a device"
        if not scene.copies_in:
            return "no pageable host tensor is copied in a step"
        mine = [f for f in FUNCTIONS if replaced_by_user(f)]
        return "your code has replaced %s" % mine[0] if mine else None

    def apply(self, scene: Any, undo: Undo) -> None:
        torch = scene.torch

        def wrap(call: Callable[..., Any]) -> Callable[..., Any]:
            def copied(tensor: Any, *args: Any, **kwargs: Any) -> Any:
                if tensor.device.type == "cpu" and tensor.dim() and _to_device(torch, call, args, kwargs):
                    pinned = tensor if tensor.is_pinned() else tensor.pin_memory()
                    return call(pinned, *args, **{**kwargs, "non_blocking": True})
                return call(tensor, *args, **kwargs)

            return copied

        undo.wrap(torch.Tensor, "to", wrap)
        undo.wrap(torch.Tensor, "cuda", wrap)


def _to_device(torch: Any, call: Any, args: Any, kwargs: Any) -> bool:
    """The call names a GPU; a `non_blocking` among the positions is left alone."""
    place = args[0] if args else kwargs.get("device")
    if call.__name__ == "cuda":
        return len(args) < 2
    if len(args) > 2 or isinstance(place, torch.Tensor):
        return False
    if isinstance(place, torch.device):
        return bool(place.type == "cuda")
    return (isinstance(place, str) and place.startswith("cuda")) or (type(place) is int)
