"""Finds the stages of a plain PyTorch loop by itself: loader, copies, forward, backward, gradient sync, optimizer.

Only outermost calls on the main thread count; whatever no stage covers is side work. Each hook is a public one of
PyTorch or a wrapper that steps aside while torch.compile traces, so the user's program computes exactly what it did
before. A step ends when the first optimizer seen has stepped (or, where none ever steps, at the next batch).
"""

from __future__ import annotations

import functools
import gc
import sys
import threading
from typing import Any, Callable, List, Optional

from stallwise.instrument import schema
from stallwise.instrument.recorder import Recorder

MEMORY_EVERY_STEPS = 20
COLLECTIVES = (
    "all_reduce", "all_gather", "all_gather_into_tensor", "reduce_scatter", "reduce_scatter_tensor", "all_to_all",
    "all_to_all_single", "broadcast", "reduce", "barrier",
)  # fmt: skip


def install(recorder: Recorder) -> "Stages":
    """Hooks what is already imported, and the rest when it is."""
    stages = Stages(recorder)
    gc.callbacks.append(stages.on_collection)
    recorder.step_listeners.append(stages.on_step)
    after_import("torch", stages.hook_torch)
    return stages


def after_import(name: str, then: Callable[[Any], None]) -> None:
    """Calls `then(module)` now, or as soon as somebody imports the module."""
    module = sys.modules.get(name)
    if module is not None and hasattr(module, "optim"):
        _quietly(then, module)
        return
    sys.meta_path.insert(0, _Finder(name, then))


class _Finder:
    """A meta-path finder that steps aside at once and runs a callback after the real import."""

    def __init__(self, name: str, then: Callable[[Any], None]) -> None:
        self._name = name
        self._then = then

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if name != self._name:
            return None
        sys.meta_path.remove(self)
        import importlib.util

        spec = importlib.util.find_spec(name)
        loader = getattr(spec, "loader", None)
        if spec is None or loader is None:
            return spec
        execute = loader.exec_module

        def exec_module(module: Any) -> None:
            execute(module)
            _quietly(self._then, module)

        loader.exec_module = exec_module
        return spec


def _quietly(call: Callable[..., Any], *args: Any) -> Any:
    try:
        return call(*args)
    except Exception as error:
        sys.stderr.write("stallwise: %s: %s; the job goes on\n" % (type(error).__name__, error))
        return None


class Stages:
    """The state machine: which stage the main thread is in."""

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder
        self.stage: Optional[str] = None
        self.main = threading.main_thread().ident
        self.stepping: Any = None  # the optimizer whose step ends a step
        self.roots: List[Any] = []
        self.is_compiling: Callable[[], bool] = lambda: False
        self._begin = 0.0
        self._event: Any = None
        self._collecting = 0.0
        self._batches_since_step = 0
        self._before_first_forward = False

    # -- entering and leaving

    def enter(self, stage: str) -> bool:
        """True if this call is the outermost and now owns the stage."""
        if self.stage is not None or threading.get_ident() != self.main:
            return False
        self.stage = stage
        self.recorder.writer.begin()
        device = self.recorder.device
        self._event = device.stamp() if device is not None else None
        self._begin = self.recorder.now()
        return True

    def leave(self) -> None:
        """Books the time of the stage that `enter` opened."""
        recorder, stage = self.recorder, self.stage
        if stage is None:
            return
        recorder.add(stage, recorder.now() - self._begin)
        if self._event is not None and recorder.device is not None:
            recorder.device.pair(stage, self._event, recorder.device.stamp())
            self._event = None
        self.stage = None

    def timed(self, stage: str, call: Callable[..., Any]) -> Callable[..., Any]:
        """The same function, booked under a stage; under torch.compile it is the function itself."""

        @functools.wraps(call)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            if self.is_compiling() or not self.enter(stage):
                return call(*args, **kwargs)
            try:
                return call(*args, **kwargs)
            finally:
                self.leave()

        return wrapped

    # -- hooks

    def hook_torch(self, torch: Any) -> None:
        """Everything that can be hooked without touching the user's objects."""
        compiler = getattr(torch, "compiler", None)
        self.is_compiling = getattr(compiler, "is_compiling", None) or (lambda: False)
        torch.Tensor.backward = self.timed(schema.BACKWARD, torch.Tensor.backward)
        torch.autograd.backward = self.timed(schema.BACKWARD, torch.autograd.backward)
        torch.save = self.timed(schema.CHECKPOINT, torch.save)
        torch.Tensor.to = self._copying(torch.Tensor.to)
        torch.Tensor.cuda = self._copying(torch.Tensor.cuda)
        from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook
        from torch.utils.data import dataloader

        register_optimizer_step_pre_hook(self._before_optimizer)
        register_optimizer_step_post_hook(self._after_optimizer)
        iterator: Any = dataloader._BaseDataLoaderIter
        iterator.__next__ = self._loading(iterator.__next__)
        distributed = sys.modules.get("torch.distributed")
        for name in COLLECTIVES:
            call = getattr(distributed, name, None)
            if call is not None:
                setattr(distributed, name, self.timed(schema.GRADIENT_SYNC, call))

    def _copying(self, call: Callable[..., Any]) -> Callable[..., Any]:
        """Copies between the batch and the first forward are the step's H2D; any other `.to` is not our business."""
        timed = self.timed(schema.H2D, call)

        @functools.wraps(call)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            return timed(*args, **kwargs) if self._before_first_forward else call(*args, **kwargs)

        return wrapped

    def _loading(self, call: Callable[..., Any]) -> Callable[..., Any]:
        timed = self.timed(schema.BATCH_WAIT, call)

        @functools.wraps(call)
        def wrapped(iterator: Any) -> Any:
            free = self.stepping is None and self.stage is None and self.recorder.borders_from_optimizer
            if free and self._batches_since_step > 0:
                self.recorder.step()  # a loop without an optimizer: every batch is a step
                self._batches_since_step = 0
            batch = timed(iterator)
            self._batches_since_step += 1
            self._before_first_forward = True
            return batch

        return wrapped

    def _before_optimizer(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        self.enter(schema.OPTIMIZER)

    def _after_optimizer(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        if self.stage == schema.OPTIMIZER:
            self.leave()
        if self.stepping is None:
            self.stepping = id(optimizer)
            _quietly(self._hook_roots, optimizer)
        if id(optimizer) == self.stepping and self.recorder.borders_from_optimizer:
            self._batches_since_step = 0
            self._before_first_forward = False
            _quietly(self.recorder.step)

    def _hook_roots(self, optimizer: Any) -> None:
        """Finds the outermost modules that own the optimizer's parameters and times their forward."""
        torch = sys.modules["torch"]
        trained = {id(p) for group in optimizer.param_groups for p in group["params"]}
        modules = [m for m in gc.get_objects() if issubclass(type(m), torch.nn.Module)]
        inside = {id(child) for m in modules for child in m.children()}
        for module in modules:
            if id(module) in inside or getattr(module, "_compiled_call_impl", None) is not None:
                continue  # a hook on a module compiled in place would be traced and recompile it
            if any(id(p) in trained for p in module.parameters()):
                module.register_forward_pre_hook(self._before_forward)
                module.register_forward_hook(self._after_forward)
                self.roots.append(module)

    def _before_forward(self, module: Any, args: Any) -> None:
        if not self.is_compiling():
            self._before_first_forward = False
            torch = sys.modules["torch"]
            evaluating = not (module.training and torch.is_grad_enabled())
            self.enter(schema.EVALUATION if evaluating else schema.FORWARD)

    def _after_forward(self, module: Any, args: Any, output: Any) -> None:
        if not self.is_compiling() and self.stage in (schema.FORWARD, schema.EVALUATION):
            self.leave()

    def on_step(self, number: int) -> None:
        """Memory every so many steps: reading the allocator's counters takes tens of microseconds."""
        if number % MEMORY_EVERY_STEPS == 0:
            torch = sys.modules.get("torch")
            if self.recorder.device is not None and torch is not None:
                self.recorder.gauge("gpu_memory_bytes", torch.cuda.memory_allocated())
            try:
                with open("/proc/self/statm", "rb") as file:
                    self.recorder.gauge("host_memory_bytes", int(file.read().split()[1]) * 4096)
            except (OSError, ValueError, IndexError):
                pass  # not Linux

    def on_collection(self, phase: str, info: Any) -> None:
        """Python's garbage collector tells when it runs."""
        if phase == "start":
            self._collecting = self.recorder.now()
        elif self._collecting:
            self.recorder.add(schema.COLLECTION, self.recorder.now() - self._collecting)
            self._collecting = 0.0
