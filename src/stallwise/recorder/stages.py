"""Finds the stages of a PyTorch loop by itself: loader, copies, forward, backward, gradient sync, optimizer.

Only outermost calls of the thread that trains count, and a span of the user's wins over the calls inside it (thread_clock.py);
whatever no stage covers is side work. Classes and functions of PyTorch
are replaced from outside, none of the user's objects is touched or held, and the replacements step aside while a compiler
traces, so the user's program computes exactly what it did before.
"""

from __future__ import annotations

import gc
import sys
import threading
from typing import Any, Callable, List, Optional, Set

from stallwise.recorder import schema, step_boundaries
from stallwise.recorder.after_import import after_import
from stallwise.recorder.compiled import Compiled
from stallwise.recorder.error_origin import quietly
from stallwise.recorder.frames import own_stack
from stallwise.recorder.loader_workers import watch_loader_workers
from stallwise.recorder.memory_account import MemoryAccount
from stallwise.recorder.optimizers import Optimizers
from stallwise.recorder.patches import Patches
from stallwise.recorder.recorder import Recorder
from stallwise.recorder.sampler import DEPTH, EVERY_S

_ident = threading.get_ident
_FORWARD_STRENGTH = step_boundaries.STRENGTH[step_boundaries.FORWARD]
COLLECTIVES = (
    "all_reduce", "all_gather", "all_gather_into_tensor", "reduce_scatter", "reduce_scatter_tensor", "all_to_all",
    "all_to_all_single", "broadcast", "reduce", "barrier",
)  # fmt: skip
_CALL_NAMES = ("_compiled_call_impl", "_call_impl")  # all that `nn.Module.__call__` is about, where it is PyTorch's own


def install(recorder: Recorder) -> "Stages":
    """Hooks what is already imported, and the rest when it is."""
    stages = Stages(recorder)
    recorder.stages = stages
    gc.callbacks.append(stages.on_collection)
    recorder.step_listeners.append(MemoryAccount(recorder).on_step)
    after_import("torch", stages.hook_torch)
    return stages


class Stages:
    """Which hooked call of the training thread is the outermost, and what repeats."""

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder
        self.on = True
        self.stage: Optional[str] = None  # of the outermost hooked call, also where a span of the user's owns its time
        self.other_threads: Set[int] = set()  # others that run models meanwhile
        self.captured_graphs = False  # CUDA graphs: CUPTI must not leave and come back beside them
        self.capturing = False  # what runs now is no step, it only becomes part of a graph
        self.before_capture: List[Callable[[], None]] = []  # what must not happen on other threads meanwhile ends
        self.is_compiling: Callable[[], bool] = lambda: False
        self.is_grad_enabled: Callable[[], bool] = lambda: True
        self._patches = Patches()
        self._removers: List[Callable[[], None]] = []
        self._collecting = 0.0
        self._unsampled_s = 0.0  # of collections
        self._before_first_forward = False
        self.in_compiled = False  # the training thread is inside a compiled function: what it calls is its own business

    def remove(self) -> None:
        """Everything as before `install`."""
        self.on = False
        self._patches.remove()
        for remove in self._removers:
            quietly(remove)
        self._removers = []
        if self.on_collection in gc.callbacks:
            gc.callbacks.remove(self.on_collection)

    # -- entering and leaving

    def enter(self, stage: str) -> bool:
        """True if this call is the outermost; the stage is open until `leave`."""
        if self.stage is not None or not self.on:
            return False
        recorder = self.recorder
        if _ident() != recorder.thread and not self._may_train(_ident()):
            return False
        self.stage = stage
        clock = recorder.training
        clock.hook = stage
        if clock.owner is None and clock.device is None:  # the usual case, in place
            clock.owner = stage
            clock.since_s = clock.now()
        else:
            clock.settle()
        return True

    def _may_train(self, thread: int) -> bool:
        """The first thread that calls a model is the one that trains; any other calls its own beside it."""
        if self.recorder.thread is None:
            self.recorder.trains_on(thread)
            return True
        self.other_threads.add(thread)
        return False

    def leave(self) -> None:
        """The call that `enter` let in is over."""
        if self.stage is None:
            return
        self.stage = None
        clock = self.recorder.training
        clock.hook = None
        clock.settle()
        if clock.pending is not None:
            clock.due()

    def boundary(self, kind: str, who: Any = None) -> None:
        """Something repeated; perhaps a step ends here, or with the stage that is still open around it."""
        recorder = self.recorder
        if not self.on or self.capturing:
            return
        sign = recorder.boundaries.sign(kind, who)
        if not sign:
            return
        me = _ident()
        if me != recorder.thread:
            if recorder.thread is not None:
                self.other_threads.add(recorder.thread)
            recorder.trains_on(me)
        self._before_first_forward = False
        clock = recorder.training
        if (
            clock.owner is not None
            and clock.owner == step_boundaries.STAGE_OF.get(kind)
            and sign != step_boundaries.PART
        ):
            clock.pending = clock.owner, lambda: quietly(recorder.on_sign, sign)
        else:
            recorder.on_sign(sign)

    def batch_came(self) -> None:
        """What is copied to the device from here to the first forward pass is the batch."""
        self._before_first_forward = True

    def forward_ran(self) -> None:
        """What is copied from here on is no batch."""
        self._before_first_forward = False

    def timed(self, stage: str, then: Optional[str] = None) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        """Wraps a function so that it is booked under a stage, and may end a step; under a compiler it is itself."""
        strength = step_boundaries.STRENGTH[then] if then is not None else -1

        def wrap(call: Callable[..., Any]) -> Callable[..., Any]:
            def wrapped(*args: Any, **kwargs: Any) -> Any:
                if self.is_compiling() or not self.enter(stage):
                    return call(*args, **kwargs)
                try:
                    result = call(*args, **kwargs)
                finally:
                    self.leave()
                if strength >= self.recorder.boundaries.strength:
                    quietly(self.boundary, then)
                return result

            return wrapped

        return wrap

    # -- hooks

    def hook_torch(self, torch: Any) -> None:
        """Replaces what a loop goes through."""
        if not self.on:
            return
        compiler = getattr(torch, "compiler", None)
        self.is_compiling = getattr(compiler, "is_compiling", None) or (lambda: False)
        self.is_grad_enabled = torch.is_grad_enabled
        patches = self._patches
        patches.wrap(torch.Tensor, "backward", self.timed(schema.BACKWARD, step_boundaries.BACKWARD))
        patches.wrap(torch.autograd, "backward", self.timed(schema.BACKWARD, step_boundaries.BACKWARD))
        patches.wrap(torch.autograd, "grad", self.timed(schema.BACKWARD))
        patches.wrap(torch, "save", self.timed(schema.CHECKPOINT), also=(torch.serialization,))
        if getattr(torch.cuda, "CUDAGraph", None) is not None:
            patches.wrap(torch.cuda.CUDAGraph, "capture_begin", self._capturing)
            patches.wrap(torch.cuda.CUDAGraph, "capture_end", self._captured)
            patches.wrap(torch.cuda.CUDAGraph, "replay", self._replaying)
        patches.wrap(torch.Tensor, "to", self._copying)
        patches.wrap(torch.Tensor, "cuda", self._copying)
        forward = patches.wrap(torch.nn.Module, "__call__", self._calling)
        after_import("torch._dynamo", lambda dynamo: self._hook_dynamo(dynamo, forward))
        from torch.utils.data import dataloader

        self._removers.append(Optimizers(self, torch, patches).remove)
        patches.wrap(dataloader._BaseDataLoaderIter, "__next__", self._loading)
        watch_loader_workers(patches, self.recorder)
        distributed = sys.modules.get("torch.distributed")
        inner = sys.modules.get("torch.distributed.distributed_c10d")
        for name in COLLECTIVES:
            if distributed is not None:
                patches.wrap(distributed, name, self.timed(schema.GRADIENT_SYNC), also=(inner,) if inner else ())

    def _calling(self, call: Callable[..., Any]) -> Callable[..., Any]:
        """Outermost calls of any module: forward, or evaluation where nothing is trained.

        A model calls thousands of its parts a step. For those this does what PyTorch's own function does, in its place: no frame more.
        """
        known = getattr(getattr(call, "__code__", None), "co_names", ()) == _CALL_NAMES

        def __call__(module: Any, *args: Any, **kwargs: Any) -> Any:
            if self.stage is not None and known:
                if module._compiled_call_impl is not None:
                    return module._compiled_call_impl(*args, **kwargs)
                return module._call_impl(*args, **kwargs)
            if self.stage is not None or not self.on or self.is_compiling() or self.in_compiled:
                return call(module, *args, **kwargs)
            training = module.training and self.is_grad_enabled()
            if not self.enter(schema.FORWARD if training else schema.EVALUATION):
                return call(module, *args, **kwargs)
            self._before_first_forward = False
            try:
                result = call(module, *args, **kwargs)
            finally:
                self.leave()
            if self.recorder.boundaries.strength <= _FORWARD_STRENGTH:
                quietly(self.boundary, step_boundaries.FORWARD, module)
            return result

        return __call__

    def _capturing(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def capture_begin(*args: Any, **kwargs: Any) -> Any:
            for end in self.before_capture:
                quietly(end)
            self.before_capture.clear()
            result = call(*args, **kwargs)
            self.captured_graphs = self.capturing = True
            return result

        return capture_begin

    def _captured(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def capture_end(*args: Any, **kwargs: Any) -> Any:
            self.capturing = False
            return call(*args, **kwargs)

        return capture_end

    def _replaying(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def replay(graph: Any) -> Any:
            if not self.enter(schema.REPLAY):
                return call(graph)
            try:
                result = call(graph)
            finally:
                self.leave()
            quietly(self.boundary, step_boundaries.REPLAY, graph)
            return result

        return replay

    def _copying(self, call: Callable[..., Any]) -> Callable[..., Any]:
        """Copies between the batch and the first forward are the step's H2D; any other `.to` is not our business."""
        timed = self.timed(schema.H2D)(call)

        def wrapped(*args: Any, **kwargs: Any) -> Any:
            return timed(*args, **kwargs) if self._before_first_forward else call(*args, **kwargs)

        return wrapped

    def _loading(self, call: Callable[..., Any]) -> Callable[..., Any]:
        timed = self.timed(schema.BATCH_WAIT)(call)

        def __next__(iterator: Any) -> Any:
            if self.stage is None:
                quietly(self.boundary, step_boundaries.BATCH)
            batch = timed(iterator)
            self.batch_came()
            return batch

        return __next__

    def _hook_dynamo(self, dynamo: Any, forward: Any) -> None:
        """Models and functions that are compiled."""
        if self.on:
            _unseen_by(dynamo, forward, self._patches)
            self._patches.wrap(dynamo.eval_frame, "_maybe_set_eval_frame", Compiled(self).switching)

    def on_collection(self, phase: str, info: Any) -> None:
        """Python's garbage collector tells when it runs."""
        if phase == "start":
            self._collecting = self.recorder.now()
        elif self._collecting:
            took_s, self._collecting = self.recorder.now() - self._collecting, 0.0
            self.recorder.collected_s += took_s
            self._unsampled_s += took_s if _ident() == self.recorder.thread else 0.0
            if self._unsampled_s >= EVERY_S:  # no sampler can look meanwhile: it stands where the collection began
                looks, self._unsampled_s = divmod(self._unsampled_s, EVERY_S)
                self.recorder.collected_at.append((own_stack(DEPTH), int(looks)))


def _unseen_by(dynamo: Any, forward: Any, patches: Patches) -> None:
    """The frame of our `__call__` is none to compile, and inside a compiled model it is what PyTorch expects there."""
    dynamo.eval_frame.skip_code(forward.__code__)
    for name, module in list(sys.modules.items()):
        if name.startswith("torch._dynamo") and "unpatched_nn_module_call" in vars(module):
            patches.put(module, "unpatched_nn_module_call", forward)
