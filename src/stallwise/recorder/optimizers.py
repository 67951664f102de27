"""Optimizers: their steps end the job's steps. PyTorch's global hooks are asked, no class of the user's is touched.

A step that raises never comes to its hook at the end. So the hook at the beginning leaves an object in the frame that calls the
optimizer: it goes with that frame, whichever way, and the stage ends with it. A gradient scaler that skips its optimizer after an
overflow ends a step as well.
"""

from __future__ import annotations

import sys
import threading
from typing import TYPE_CHECKING, Any, Callable, List

from stallwise.recorder import schema, step_boundaries
from stallwise.recorder.error_origin import quietly
from stallwise.recorder.patches import Patches

if TYPE_CHECKING:
    from stallwise.recorder.stages import Stages


_ident = threading.get_ident
_WRAPPER = "wrapper"  # the function of PyTorch that calls hooks and optimizer


OPTIMIZER, THREAD, ENTERED, OVER = range(4)
_Open = List[Any]  # a call of an optimizer: these four. A list, since one is made each step


class _Arguments(tuple):  # type: ignore[type-arg]
    """The arguments as they came, and the news that the frame that holds them has gone."""

    call: _Open
    hooks: "Optimizers"

    def __del__(self) -> None:
        if not self.call[OVER]:
            quietly(self.hooks.gone, self.call)


class Optimizers:
    """Hooks of every optimizer and of gradient scalers."""

    def __init__(self, stages: "Stages", torch: Any, patches: Patches) -> None:
        from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

        self._stages = stages
        self._open: List[_Open] = []  # of all threads, in the order in which they began
        self._signs = 0
        self._arguments = type("_Arguments", (_Arguments,), {"hooks": self})
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
        stages = self._stages
        if stages.is_compiling() or not stages.on:
            return None
        if self._open:
            quietly(self._end_those_that_raised)
        call = [optimizer, _ident(), stages.enter(schema.OPTIMIZER), False]
        self._open.append(call)
        arguments = self._arguments((args, kwargs))
        arguments.call = call
        return arguments

    def _end_those_that_raised(self) -> None:
        """Somebody has kept their frames: none of them is on this thread's stack."""
        frame: Any = sys._getframe(3)
        caller, me = frame.f_code, _ident()
        running = -1  # the one that begins now
        while frame is not None:
            running += frame.f_code is caller
            frame = frame.f_back
        mine = [call for call in self._open if call[THREAD] == me]
        for call in reversed(mine[max(running, 0) :]):
            self._end(call)

    def gone(self, call: _Open) -> None:
        """The frame has gone and the hook at the end never came: the optimizer raised."""
        if call[THREAD] != _ident():
            return  # somebody's look at this thread's frames ends on another thread; the next step of an optimizer notices
        # In PyTorch's own line it was only replaced, by what another hook returned: then a raise is noticed later.
        if sys is not None and sys._getframe(3).f_code.co_name != _WRAPPER:
            self._end(call)

    def _after(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        if self._stages.is_compiling():
            return
        for call in reversed(self._open):
            if call[OPTIMIZER] is optimizer:
                self._end(call)
                return
        quietly(self._stages.boundary, step_boundaries.OPTIMIZER, optimizer)

    def _end(self, call: _Open) -> None:
        call[OVER] = True
        optimizer = call[OPTIMIZER]
        self._open = [other for other in self._open if other is not call]
        if call[ENTERED]:
            self._stages.leave()
        self._signs += 1
        for other in self._open:
            if other[OPTIMIZER] is optimizer:
                return  # a subclass calls the step of its parent: both are hooked, one of them is the step
        quietly(self._stages.boundary, step_boundaries.OPTIMIZER, optimizer)

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
                    quietly(stages.boundary, step_boundaries.OPTIMIZER, optimizer)
                stages.leave()

        return step
