"""Optimizers: their steps end the job's steps. PyTorch's global hooks are asked, no class of the user's is touched.

A step that raises never comes to its hook at the end. So the hook at the beginning leaves an object in the frame that calls the
optimizer: it goes with that frame, whichever way, and the stage ends with it. A gradient scaler that skips its optimizer after an
overflow ends a step as well.
"""

from __future__ import annotations

import sys
import threading
from typing import TYPE_CHECKING, Any, Callable, Dict, List

from stallwise.instrument import borders, schema
from stallwise.instrument.blame import quietly
from stallwise.instrument.patches import Patches

if TYPE_CHECKING:
    from stallwise.instrument.stages import Stages


class _Open:
    """A call of an optimizer that has not ended."""

    __slots__ = ("entered", "optimizer", "over")

    def __init__(self, optimizer: Any, entered: bool) -> None:
        self.optimizer = optimizer
        self.entered = entered
        self.over = False


class _Arguments(tuple):  # type: ignore[type-arg]
    """The arguments as they came, and the news that the frame that holds them has gone."""

    gone: Callable[[], None]

    def __del__(self) -> None:
        gone = vars(self).get("gone")
        if gone is not None:
            gone()


class Optimizers:
    """Hooks of every optimizer and of gradient scalers."""

    def __init__(self, stages: "Stages", torch: Any, patches: Patches) -> None:
        from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

        self._stages = stages
        self._open: Dict[int, List[_Open]] = {}  # by thread, outermost first
        self._signs = 0
        self._handles = [register_optimizer_step_pre_hook(self._before), register_optimizer_step_post_hook(self._after)]
        patches.wrap(torch.optim.Optimizer, "zero_grad", stages.timed(schema.OPTIMIZER))
        scaler = getattr(getattr(torch, "amp", None), "GradScaler", None)
        if scaler is not None:
            patches.wrap(scaler, "step", self._scaling)

    def remove(self) -> None:
        """Optimizers are unhooked again."""
        for handle in self._handles:
            quietly(handle.remove)

    def _before(self, optimizer: Any, args: Any, kwargs: Any) -> Any:
        if self._stages.is_compiling() or not self._stages.on:
            return None
        caller = sys._getframe(1).f_code
        mine = self._open.setdefault(threading.get_ident(), [])
        while mine and len(mine) >= _count(caller):  # one that raised, and whose frame somebody has kept
            self._end(mine[-1])
        call = _Open(optimizer, self._stages.enter(schema.OPTIMIZER))
        mine.append(call)
        arguments = _Arguments((args, kwargs))
        arguments.gone = lambda: self._gone(call, caller)
        return arguments

    def _gone(self, call: _Open, caller: Any) -> None:
        # In the caller's own line it was only replaced, by what another hook returned: then a raise is noticed later.
        if not call.over and sys is not None and sys._getframe(2).f_code is not caller:
            quietly(self._end, call)

    def _after(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        if self._stages.is_compiling():
            return
        for call in reversed(self._open.get(threading.get_ident(), [])):
            if call.optimizer is optimizer:
                self._end(call)
                return
        quietly(self._stages.border, borders.OPTIMIZER, optimizer)

    def _end(self, call: _Open) -> None:
        call.over = True
        inside = False  # a subclass calls the step of its parent: both are hooked, one of them is the step
        for mine in list(self._open.values()):
            if call in mine:
                mine.remove(call)
                inside = any(other.optimizer is call.optimizer for other in mine)
        if call.entered:
            self._stages.leave()
        self._signs += 1
        if not inside:
            quietly(self._stages.border, borders.OPTIMIZER, call.optimizer)

    def _scaling(self, call: Callable[..., Any]) -> Callable[..., Any]:
        stages = self._stages

        def step(scaler: Any, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
            if stages.is_compiling() or not stages.enter(schema.OPTIMIZER):
                return call(scaler, optimizer, *args, **kwargs)
            signs = self._signs
            try:
                return call(scaler, optimizer, *args, **kwargs)
            finally:
                if self._signs == signs:  # skipped
                    quietly(stages.border, borders.OPTIMIZER, optimizer)
                stages.leave()

        return step


def _count(code: Any) -> int:
    """How often this code is on the stack."""
    found, frame = 0, sys._getframe(1)
    while frame is not None:
        found += frame.f_code is code
        frame = frame.f_back  # type: ignore[assignment]
    return found
