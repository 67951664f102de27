"""For every trial a small job on the CPU in which it applies, and one in which it does not."""

from __future__ import annotations

import gc
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from tests.recorder.trials.jobs import Answering, Training
from torch import nn

# What these do needs a GPU to be worth anything, so on a CPU they refuse; what they change can be changed and undone all the same.
FOR_DEVICES = ("compile-graphs", "cudnn-benchmark", "no-empty-cache", "pinned-copies", "stale-reads", "tf32")


class Generating(Answering):
    """A model that is configured as those of transformers are."""

    def __init__(self) -> None:
        super().__init__()
        self.model.config = SimpleNamespace(_attn_implementation="eager")  # type: ignore[assignment]
        self.model.generation_config = SimpleNamespace(cache_implementation=None)  # type: ignore[assignment]


class Ranked(Training):
    """A real DistributedDataParallel, of one rank."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = self.model
        self.model = nn.parallel.DistributedDataParallel(self.model)  # type: ignore[assignment]


class Plain(Training):
    """No convolution, nothing recomputed."""

    def __init__(self, dtype: torch.dtype = torch.float32) -> None:
        super().__init__()
        self.model = nn.Sequential(nn.Flatten(), nn.Linear(108, 4)).to(dtype)  # type: ignore[assignment]
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=1e-3)
        batches = iter(self.loader)
        self.batches = ((x.to(dtype), y) for x, y in batches)  # type: ignore[assignment]


HOMES: dict[str, Callable[[], Any]] = {
    "bf16-weights": Answering, "double-batch": Answering, "fused-attention": Generating, "static-cache": Generating,
    "no-gradient-sync": Ranked,
}  # fmt: skip

# A job that gives no occasion; where it is none of these, the machine or a setting does not.
STRANGERS: dict[str, Callable[[], Any]] = {
    "bf16-autocast": lambda: Plain(torch.bfloat16), "bf16-weights": Training, "channels-last": Plain, "double-batch": Training,
    "double-microbatch": Answering, "foreach-optimizer": Answering, "fused-attention": Training, "fused-optimizer": Answering,
    "last-batch-again": Answering, "no-gradient-sync": Training, "no-recompute": Plain, "static-cache": Training,
}  # fmt: skip


@contextmanager
def at_home(name: str, change: Any) -> Iterator[Any]:
    """A job in which the trial applies."""
    with pytest.MonkeyPatch.context() as patch:
        if name == "more-threads":
            patch.setattr(change, "_cores", lambda: torch.get_num_threads() + 1)
        if name.startswith("compile"):
            change.settings = {"backend": "eager"}
            torch._dynamo.reset()
        if name != "no-gradient-sync":
            yield HOMES.get(name, Training)()
            return
        with tempfile.NamedTemporaryFile() as store:
            torch.distributed.init_process_group("gloo", init_method=f"file://{store.name}", rank=0, world_size=1)
            try:
                yield Ranked()
            finally:
                torch.distributed.destroy_process_group()


@contextmanager
def among_strangers(name: str, change: Any) -> Iterator[Any]:
    """A job, or a machine, for which the trial is not."""
    with pytest.MonkeyPatch.context() as patch:
        if name == "more-threads":
            patch.setattr(change, "_cores", torch.get_num_threads)
        job = STRANGERS.get(name, Training)()
        if name == "compile":
            job.model.compile(backend="eager")
        collects = gc.isenabled()
        if name == "no-collector":
            gc.disable()
        try:
            yield job
        finally:
            if collects:
                gc.enable()


def prepared(name: str, scene: Any, recorder: Any) -> None:
    """What the session has put in place by the time of the trial: a rehearsal that has seen some saves."""
    loaders: dict[int, Any] = {id(i): torch.utils.data.DataLoader(i._dataset, batch_size=4) for i in scene.iterators}
    scene.loader_of = lambda iterator: loaders.get(id(iterator))
    if name == "no-checkpoint":
        scene.held_off = SimpleNamespace(saving=None)
        scene.saves = [1, 2, 3]
