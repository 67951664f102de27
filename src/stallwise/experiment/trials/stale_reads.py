"""Stale host reads: what the host reads of the device is what it read there last time, so nothing waits for the device."""

from __future__ import annotations

import sys
import time
from typing import Any, Callable, Dict, List, Optional

from stallwise.experiment.change import Change, Undo, replaced_by_user

VALUES = ("item", "tolist", "__float__", "__int__", "__bool__", "__index__")
NEWEST_S = 0.02  # filling a copy costs two launches; reading must not cost more than what it is to show
OLDEST_S = 1.0  # a loop that waits for a value to change gets a new one after so long
SYNC = "torch.cuda.synchronize"


class StaleReads(Change):
    """`.item()`, `float(t)`, `.cpu()` and the like return the value of an earlier step; `synchronize` returns at once.

    Each reading line of the program keeps a copy that the device fills in its own time.
    """

    name = "stale-reads"
    title = "host reads one step old"
    usual = 0.05
    causes = ("host-sync",)
    removes = True
    needs = "read less often, or one step late: keep losses on the device, log every so many steps"
    risk = "decisions that depend on the value come a step late"
    watch = (SYNC,)

    def __init__(self) -> None:
        self._known: Dict[Any, List[Any]] = {}  # reading line -> host copy, event that says it is filled, when it was

    def refuses(self, scene: Any) -> Optional[str]:
        if scene.device != "cuda":
            return "there is no device to wait for"
        if not scene.reads_host and not scene.calls(SYNC):
            return "no read of the device was seen in a step"
        mine = [n for n in VALUES if replaced_by_user("torch.Tensor." + n)]
        return "your code has replaced torch.Tensor.%s" % mine[0] if mine else None

    def apply(self, scene: Any, undo: Undo) -> None:
        torch = scene.torch
        for name in VALUES:
            undo.wrap(torch.Tensor, name, self._value(torch))
        undo.wrap(torch.Tensor, "cpu", self._copy(torch))
        undo.wrap(torch.Tensor, "to", self._copy(torch))
        undo.wrap(torch.cuda, "synchronize", _at_once)
        undo.later(self._known.clear)

    def _value(self, torch: Any) -> Callable[..., Any]:
        def wrap(call: Callable[..., Any]) -> Callable[..., Any]:
            def read(tensor: Any, *args: Any) -> Any:
                if tensor.device.type != "cuda" or torch.compiler.is_compiling():
                    return call(tensor, *args)
                return call(self._stale(torch, tensor, sys._getframe(1), call.__name__), *args)

            return read

        return wrap

    def _copy(self, torch: Any) -> Callable[..., Any]:
        def wrap(call: Callable[..., Any]) -> Callable[..., Any]:
            def copied(tensor: Any, *args: Any, **kwargs: Any) -> Any:
                place = args[0] if args else kwargs.get("device")
                named = isinstance(place, (str, torch.device)) and str(place) == "cpu"
                if (
                    not (named or call.__name__ == "cpu")
                    or tensor.device.type != "cuda"
                    or torch.compiler.is_compiling()
                ):
                    return call(tensor, *args, **kwargs)
                return call(self._stale(torch, tensor, sys._getframe(1), call.__name__), *args, **kwargs).clone()

            return copied

        return wrap

    def _stale(self, torch: Any, tensor: Any, frame: Any, name: str) -> Any:
        """What this line read last time; the device is asked to fill in what it would read now."""
        key = (frame.f_code, frame.f_lineno, name, tuple(tensor.shape), tensor.dtype)
        known = self._known.get(key)
        tensor = tensor.detach()
        if known is None:
            host = torch.empty(tensor.shape, dtype=tensor.dtype, pin_memory=True)
            host.copy_(tensor)
            self._known[key] = [host, torch.cuda.Event(), time.monotonic()]
            return host
        host, filled, since_s = known
        if time.monotonic() - since_s > OLDEST_S:
            filled.synchronize()
        if time.monotonic() - since_s > NEWEST_S and filled.query():
            host.copy_(tensor, non_blocking=True)
            filled.record()
            known[2] = time.monotonic()
        return host


def _at_once(call: Callable[..., Any]) -> Callable[..., Any]:
    def synchronize(*args: Any, **kwargs: Any) -> None:
        return None

    return synchronize
