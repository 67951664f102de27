"""A trial may fail inside the job's own calls. Here it is caught, undone, and the call made as is: the job goes on.

The guards stand around models, backward passes and optimizers for as long as a trial lasts, on both sides alike. What fails
as is, is the job's own and passes.
"""

from __future__ import annotations

import weakref
from typing import Any, Callable

from stallwise.experiment.change import Undo
from stallwise.experiment.scene import CALL

WAY = "_stallwise_way"  # how a guarded model is called during a trial that calls it otherwise: compiled, with twice the batch


def forget(module: Any, name: str) -> Callable[[], None]:
    """A way back for something of ours among a module's own attributes."""

    def back() -> None:
        module.__dict__.pop(name, None)

    return back


class Guard:
    """Around one trial. `failed(error)` undoes the change."""

    def __init__(
        self,
        scene: Any,
        changed: Callable[[], bool],
        failed: Callable[[BaseException], None],
        loss: Callable[[Any], None] = lambda loss: None,
    ) -> None:
        self._scene = scene
        self._changed = changed
        self._failed = failed
        self._loss = loss  # hears of the tensor that a backward pass starts from
        self._undo = Undo()

    def stand(self) -> None:
        """From here on."""
        torch = self._scene.torch
        for root in self._scene.roots:
            if CALL not in vars(root) and type(root).__call__ is torch.nn.Module.__call__:
                vars(root)[CALL] = self._around(root)
                self._undo.later(forget(root, CALL))
        if self._scene.rehearsal:
            self._undo.wrap(torch.Tensor, "backward", self._backward)
            self._undo.wrap(torch.autograd, "backward", self._backward)
            self._undo.wrap(torch.autograd, "grad", self._gradients)
        for optimizer in self._scene.optimizers:
            self._undo.put(optimizer, "step", self._stepping(optimizer))

    def leave(self) -> None:
        """Nothing of it is left."""
        self._undo.back()

    def _around(self, root: Any) -> Callable[..., Any]:
        held = weakref.ref(root)

        def guarded(*args: Any, **kwargs: Any) -> Any:
            root: Any = held()
            way = vars(root).get(WAY) or root._call_impl
            try:
                return way(*args, **kwargs)
            except Exception as error:
                if not self._changed():
                    raise
                self._failed(error)
            return root._call_impl(*args, **kwargs)

        return guarded

    def _backward(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def backward(*args: Any, **kwargs: Any) -> Any:
            self._report_loss(args, kwargs)
            try:
                return call(*args, **kwargs)
            except Exception as error:
                if not self._changed():
                    raise
                self._failed(error)
            # The graph is spent: this step of the rehearsal learns nothing.
            for optimizer in self._scene.optimizers:
                for group in optimizer.param_groups:
                    for parameter in group["params"]:
                        parameter.grad = self._scene.torch.zeros_like(parameter)
            return None

        return backward

    def _gradients(self, call: Callable[..., Any]) -> Callable[..., Any]:
        """`torch.autograd.grad`: a loop that has no optimizer of PyTorch's takes its gradients here."""

        def grad(outputs: Any, inputs: Any, *args: Any, **kwargs: Any) -> Any:
            self._report_loss((outputs,), {})
            try:
                return call(outputs, inputs, *args, **kwargs)
            except Exception as error:
                if not self._changed():
                    raise
                self._failed(error)
            found = [inputs] if isinstance(inputs, self._scene.torch.Tensor) else list(inputs)
            return tuple(self._scene.torch.zeros_like(one) for one in found)

        return grad

    def _report_loss(self, args: Any, kwargs: Any) -> None:
        loss = args[0] if args else kwargs.get("tensors")
        self._loss(loss[0] if isinstance(loss, (list, tuple)) and loss else loss)

    def _stepping(self, optimizer: Any) -> Callable[..., Any]:
        held = weakref.ref(optimizer)
        own = vars(optimizer).get("step")  # a scheduler's wrapper, where there is one

        def step(*args: Any, **kwargs: Any) -> Any:
            one: Any = held()
            call = own if own is not None else type(one).step.__get__(one)
            try:
                return call(*args, **kwargs)
            except Exception as error:
                if not self._changed():
                    raise
                self._failed(error)
            return call(*args, **kwargs)

        return step
