"""Functions under `torch.compile`: what they return tells what they were.

A compiled model is a module and hooked as one. A compiled function is nothing that could be hooked from outside, but Dynamo
switches itself on where such a function begins and off where it ends. Time in between that no hooked call takes (a backward pass
or an optimizer inside a compiled step) is forward if the result can be differentiated or a backward pass ran inside, evaluation
where gradients are off, and side work else: an augmentation, an optimizer's own compiled step.
"""

from __future__ import annotations

import sys
import threading
from typing import TYPE_CHECKING, Any, Callable, Optional

from stallwise.recorder import schema, step_boundaries
from stallwise.recorder.error_origin import quietly

if TYPE_CHECKING:
    from stallwise.recorder.stages import Stages

RESULT = "result"  # Dynamo's own name for it, in the frame that switches off
MOST_LOOKED = 16  # values of a nested result


class Compiled:
    """Which compiled function of the training thread is the outermost."""

    def __init__(self, stages: "Stages") -> None:
        self._stages = stages
        self._function: Any = None
        self._frame: Any = None  # in which Dynamo was switched on, and will be off again; inside it is off now and then

    def switching(self, switch: Callable[..., Any]) -> Callable[..., Any]:
        """Hears of Dynamo's switch. Nothing of ours may run while it is on: it would be compiled."""

        def _maybe_set_eval_frame(callback: Any) -> Any:
            if callable(callback):
                quietly(self._on, callback, sys._getframe(1))
                return switch(callback)
            before = switch(callback)
            if self._frame is not None and self._frame is sys._getframe(1):
                quietly(self._off, self._frame.f_locals.get(RESULT))
            return before

        return _maybe_set_eval_frame

    def _on(self, callback: Any, frame: Any) -> None:
        stages = self._stages
        recorder = stages.recorder
        if self._function is not None or stages.stage is not None or not stages.on:
            return
        me = threading.get_ident()
        if recorder.thread is None:
            recorder.trains_on(me)
        if me != recorder.thread:
            return
        clock = recorder.clock()
        self._function, self._frame = callback, frame
        stages.in_compiled = True
        clock.compiled = schema.COMPILED
        clock.settle()

    def _off(self, result: Any) -> None:
        stages = self._stages
        function, self._function, self._frame = self._function, None, None
        stages.in_compiled = False
        clock = stages.recorder.clock()
        clock.compiled = None
        clock.settle()
        stage = self._stage_of(result, schema.BACKWARD in clock.stages)
        clock.rename(schema.COMPILED, stage)
        if stage is not None:
            stages.forward_ran()
            stages.boundary(step_boundaries.FORWARD, function)

    def _stage_of(self, result: Any, backward_ran: bool) -> Optional[str]:
        if not self._stages.is_grad_enabled():
            return schema.EVALUATION
        return schema.FORWARD if backward_ran or differentiable(result) else None


def differentiable(result: Any) -> bool:
    """A tensor in it has a graph behind it."""
    waiting, looked = [result], 0
    while waiting and looked < MOST_LOOKED:
        value = waiting.pop()
        looked += 1
        if getattr(value, "requires_grad", None) is True:
            return True
        if isinstance(value, dict):
            waiting += list(value.values())[:MOST_LOOKED]
        elif isinstance(value, (tuple, list)):
            waiting += list(value)[:MOST_LOOKED]
    return False
