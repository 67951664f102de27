"""What a job consists of, seen over a few of its steps: models, optimizers, loaders, and how often it calls what.

Everything is held weakly. Counting wraps functions for these steps alone; before the first block of a trial they are themselves.
"""

from __future__ import annotations

import sys
import threading
import weakref
from typing import Any, Callable, Dict, Iterable, List, Optional, Tuple

from stallwise.experiment.casts import Casts
from stallwise.experiment.change import Change, Undo, owner_of
from stallwise.recorder import step_boundaries
from stallwise.recorder.patches import Patches

CALL = "_compiled_call_impl"  # where `nn.Module.__call__` looks for another way to call this one module
PLAIN = (int, float, str, bytes, type(None), list, tuple, dict)  # inputs that remember nothing
# Some loops take their gradients without an optimizer of PyTorch's.
BACKWARD = ("torch.Tensor.backward", "torch.autograd.backward", "torch.autograd.grad")
MOST_ROOTS = 16  # a job that calls more models from outside than this is no model and a loss
ITERATORS = (
    "torch.utils.data.dataloader._BaseDataLoaderIter",
    "torchdata.stateful_dataloader.stateful_dataloader._StatefulBaseDataLoaderIter",
)


class Scene:
    """The job as trials see it."""

    def __init__(self, torch: Any, recorder: Any, rehearsal: bool = True, folder: str = "") -> None:
        self.torch = torch
        self.recorder = recorder
        self.rehearsal = rehearsal
        self.folder = folder
        self.steps_seen = 0
        self.step_s = 0.0
        self.shares: Dict[str, float] = {}  # of a step, by stage
        self.inputs: Dict[int, List[Tuple[Tuple[int, ...], str, str]]] = {}  # of a root: shape, dtype, device
        self.stateful = (
            False  # models are handed something that remembers from call to call: a cache of keys and values
        )
        self.reads_host = 0  # calls on device tensors that wait for the device
        self.copies_in = 0  # copies of pageable host tensors to the device
        self.casts = Casts(torch)
        self.trains = False
        self.saves: List[int] = []  # steps at which torch.save was called
        self.failed: Callable[[BaseException], None] = lambda error: (
            None
        )  # a trial tells of trouble in a call of the job's
        self.held_off: Any = None  # rehearsal.Rehearsal, in a rehearsal
        self.loader_of: Callable[[Any], Any] = lambda iterator: None  # the loader that an iterator walks over
        self._roots: List[Any] = []
        self._optimizers: List[Any] = []
        self._iterators: List[Any] = []
        self._calls: Dict[str, int] = {}
        self._patches = Patches()
        self._watching = Undo()
        self.captured_graphs = False  # the job replays CUDA graphs of its own: addresses must stay
        self._boundary: Any = None
        self._inside = threading.local()

    # -- what trials ask

    @property
    def device(self) -> str:
        """ "cuda" or "cpu": where the models are."""
        for root in self.roots:
            for parameter in root.parameters():
                return str(parameter.device.type)
        return "cuda" if self.torch.cuda.is_initialized() else "cpu"

    @property
    def roots(self) -> List[Any]:
        """Models with parameters that the job calls from outside, still alive. Parts of one are none: recomputing calls them."""
        found = [root for root in (ref() for ref in self._roots) if root is not None]
        parts = {id(part) for root in found for part in root.modules() if part is not root}
        return [root for root in found if id(root) not in parts]

    @property
    def optimizers(self) -> List[Any]:
        """Optimizers that have stepped, still alive."""
        return [one for one in (ref() for ref in self._optimizers) if one is not None]

    @property
    def iterators(self) -> List[Any]:
        """Iterators of loaders that gave batches, still alive."""
        return [one for one in (ref() for ref in self._iterators) if one is not None]

    def iterator_classes(self) -> List[Any]:
        """The classes of loader iterators that are imported."""
        found = []
        for path in ITERATORS:
            owner, name = owner_of(path)
            if owner is not None:
                found.append(getattr(owner, name))
        return found

    def calls(self, path: str) -> float:
        """Calls a step of a watched function."""
        return self._calls.get(path, 0) / max(self.steps_seen, 1)

    def modules(self) -> Iterable[Any]:
        """All modules of all roots, each once."""
        seen = set()
        for root in self.roots:
            for module in root.modules():
                if id(module) not in seen:
                    seen.add(id(module))
                    yield module

    def parameters(self) -> Iterable[Any]:
        """All parameters of all roots, each once."""
        seen = set()
        for root in self.roots:
            for parameter in root.parameters():
                if id(parameter) not in seen:
                    seen.add(id(parameter))
                    yield parameter

    def compiled(self) -> bool:
        """Some model is compiled already."""
        for module in self.modules():
            if type(module).__name__ == "OptimizedModule" or vars(module).get(CALL) is not None:
                return True
        return self.calls("torch._dynamo.eval_frame._TorchDynamoContext.__call__") > 0

    def float32(self) -> bool:
        """Most parameters are float32."""
        sizes: Dict[str, int] = {}
        for parameter in self.parameters():
            sizes[str(parameter.dtype)] = sizes.get(str(parameter.dtype), 0) + parameter.numel()
        return bool(sizes) and max(sizes, key=lambda name: sizes[name]) == "torch.float32"

    @property
    def autocast(self) -> bool:
        """Models run under an autocast of the job's own that narrows types."""
        return self.casts.narrow

    def memory(self) -> Tuple[float, float]:
        """Bytes of the device: in use at the peak so far, and there are in all; (0, 0) without a device."""
        if self.device != "cuda":
            return 0.0, 0.0
        total = self.torch.cuda.get_device_properties(self.torch.cuda.current_device()).total_memory
        return float(self.torch.cuda.max_memory_reserved()), float(total)

    # -- looking

    def look(self, changes: Iterable[Change]) -> None:
        """Begins to count, for these trials."""
        self.steps_seen = 0
        # A hook of PyTorch cannot be added from within a step's own hooks, where the plan goes on; the recorder's is asked.
        self._boundary = self.recorder.stages.boundary
        self.recorder.stages.boundary = self._on_boundary
        calling = self._patches.wrap(self.torch.nn.Module, "__call__", self._calling)
        dynamo = sys.modules.get("torch._dynamo")
        if dynamo is not None:
            dynamo.eval_frame.skip_code(calling.__code__)
        for path in dict.fromkeys((*BACKWARD, *(path for change in changes for path in change.watch))):
            owner, name = owner_of(path)
            if owner is not None:
                self._patches.wrap(owner, name, self._counting(path))
        for kind in self.iterator_classes():
            self._patches.wrap(kind, "__next__", self._loading)
        for name in ("to", "cuda"):
            self._patches.wrap(self.torch.Tensor, name, self._copying)
        for name in ("item", "tolist", "cpu", "numpy", "__float__", "__int__", "__bool__", "__index__"):
            self._patches.wrap(self.torch.Tensor, name, self._reading)
        self.casts.look(self._patches)
        for change in changes:
            change.look(self, self._watching)

    def step(self) -> None:
        """One step was looked at. Once the models are known, their inputs are looked at, too."""
        self.steps_seen += 1
        for root in self.roots:
            if id(root) not in self.inputs and type(root).__name__ != "OptimizedModule" and not self.compiled():
                self.inputs[id(root)] = []
                self._see_inputs(root)

    def looked(self) -> None:
        """Ends counting; every function is itself again."""
        self._watching.back()
        self._patches.remove()
        if self._boundary is not None:
            del self.recorder.stages.boundary  # the class's own method shows again
            self._boundary = None
        for root in self.roots:  # one that was never called again
            if getattr(vars(root).get(CALL), "__name__", "") == "seen":
                del vars(root)[CALL]
        self.trains = bool(self.optimizers) or any(self.calls(path) for path in BACKWARD)
        self.captured_graphs = bool(self.recorder.stages.captured_graphs)

    def _on_boundary(self, kind: str, who: Any = None) -> None:
        if kind == step_boundaries.OPTIMIZER and who is not None:
            self._keep(self._optimizers, who, lambda: True)
        self._boundary(kind, who)

    def _calling(self, call: Callable[..., Any]) -> Callable[..., Any]:
        """Outermost calls, also those inside an optimizer's closure."""

        def __call__(module: Any, *args: Any, **kwargs: Any) -> Any:
            if getattr(self._inside, "a_model", False):
                return call(module, *args, **kwargs)
            self._inside.a_model = True
            self.casts.model_called()
            try:
                self._keep(self._roots, module, lambda: next(iter(module.parameters()), None) is not None)
                return call(module, *args, **kwargs)
            finally:
                self._inside.a_model = False

        return __call__

    def _keep(self, known: List[Any], one: Any, wanted: Callable[[], bool]) -> None:
        if len(known) < MOST_ROOTS and all(ref() is not one for ref in known) and wanted():
            try:
                known.append(weakref.ref(one))
            except TypeError:
                pass

    def _see_inputs(self, root: Any) -> None:
        scene, number = self, id(root)

        def seen(*args: Any, **kwargs: Any) -> Any:
            root: Any = held()
            vars(root).pop(CALL, None)
            found = scene.inputs[number]
            for value in (*args, *kwargs.values()):
                if isinstance(value, scene.torch.Tensor):
                    found.append((tuple(value.shape), str(value.dtype), str(value.device.type)))
                elif not isinstance(value, PLAIN):
                    scene.stateful = True
            return root._call_impl(*args, **kwargs)

        held = weakref.ref(root)
        if CALL not in vars(root):
            vars(root)[CALL] = seen

    def _counting(self, path: str) -> Callable[..., Any]:
        def wrap(call: Callable[..., Any]) -> Callable[..., Any]:
            def counted(*args: Any, **kwargs: Any) -> Any:
                self._calls[path] = self._calls.get(path, 0) + 1
                return call(*args, **kwargs)

            return counted

        return wrap

    def _loading(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def __next__(iterator: Any) -> Any:
            self._keep(self._iterators, iterator, lambda: True)
            return call(iterator)

        return __next__

    def _copying(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def copied(tensor: Any, *args: Any, **kwargs: Any) -> Any:
            result = call(tensor, *args, **kwargs)
            if tensor.device.type == "cpu" and result.device.type == "cuda" and tensor.dim() and not tensor.is_pinned():
                self.copies_in += 1
            elif tensor.device.type == "cuda" and result.device.type == "cpu":
                self.reads_host += 1
            return result

        return copied

    def _reading(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def read(tensor: Any, *args: Any, **kwargs: Any) -> Any:
            if tensor.device.type == "cuda":
                self.reads_host += 1
            return call(tensor, *args, **kwargs)

        return read


def imported(name: str) -> Optional[Any]:
    """A module, if the job has it."""
    return sys.modules.get(name)
