"""Tiny jobs on the CPU, and a recorder that hears their steps: what a trial sees of a real program."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import nn

from stallwise.experiment.scene import Scene
from stallwise.experiment.trials.no_recompute import SAVES
from stallwise.recorder import verbs

torch.set_num_threads(1)  # tiny models: threads would only wait for each other


class Net(nn.Module):
    """A convolution, something recomputed, and a head."""

    def __init__(self) -> None:
        super().__init__()
        self.look = nn.Conv2d(3, 8, 3, padding=1)
        self.middle = nn.Sequential(nn.Linear(8 * 36, 32), nn.GELU())
        self.head = nn.Linear(32, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = torch.relu(self.look(x)).flatten(1)
        return self.head(torch.utils.checkpoint.checkpoint(self.middle, x, use_reentrant=False))


class Pictures(torch.utils.data.Dataset[tuple[torch.Tensor, int]]):
    """The same for the same index."""

    def __init__(self, count: int = 4096) -> None:
        self._count = count

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, at: int) -> tuple[torch.Tensor, int]:
        return torch.full((3, 6, 6), (at % 11) / 11), at % 4


class Training:
    """A loop one can drive step by step."""

    def __init__(self, seed: int = 0, optimizer: str = "AdamW") -> None:
        torch.manual_seed(seed)
        self.model = Net()
        self.optimizer = getattr(torch.optim, optimizer)(self.model.parameters(), lr=1e-3)
        self.loader = torch.utils.data.DataLoader(Pictures(), batch_size=4)
        self.batches = iter(self.loader)
        self.losses: list[float] = []

    def step(self, count: int = 1) -> None:
        """Some steps of training."""
        for _ in range(count):
            x, y = next(self.batches)
            loss = nn.functional.cross_entropy(self.model(x), y)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            self.losses.append(float(loss.detach()))


class Answering:
    """Inference alone."""

    def __init__(self) -> None:
        torch.manual_seed(0)
        self.model = Net().eval()
        self.batch = torch.rand(4, 3, 6, 6)
        self.answers: list[torch.Tensor] = []

    def step(self, count: int = 1) -> None:
        """Some batches."""
        with torch.no_grad():
            for _ in range(count):
                self.answers.append(self.model(self.batch))


@contextmanager
def recorded(folder: Path) -> Iterator[Any]:
    """A recorder as `stallwise try` starts it; afterwards PyTorch is itself again."""
    verbs.stop()
    verbs.start(str(folder), stacks=False, watchdog=False)
    try:
        yield verbs.recording()
    finally:
        verbs.stop()


def looked_at(job: Any, recorder: Any, *changes: Any, steps: int = 3) -> Scene:
    """The scene after some steps of a job, for these trials."""
    scene = Scene(torch, recorder)
    job.step(2)
    scene.look(changes)
    for _ in range(steps):
        job.step()
        scene.step()
    scene.looked()
    return scene


def state(job: Any) -> dict[str, Any]:
    """Everything that a trial could leave changed: identities, strides, values, settings, functions."""
    import gc

    found: dict[str, Any] = {
        "gc": gc.isenabled(),
        "threads": torch.get_num_threads(),
        "precision": torch.get_float32_matmul_precision(),
        "benchmark": torch.backends.cudnn.benchmark,
        "autocast": torch.is_autocast_enabled("cpu"),
        "functions": [
            getattr(torch.Tensor, n)
            for n in ("to", "cuda", "cpu", "item", "tolist", "backward", "__float__", "__bool__")
        ]
        + [torch.cuda.empty_cache, torch.cuda.synchronize, torch.save]
        + [vars(torch.utils.checkpoint)[n] for n in ("checkpoint", "CheckpointFunction", SAVES)]
        + [torch.utils.data.dataloader._BaseDataLoaderIter.__next__, torch.autograd.backward],
    }
    model = job.model
    found["hooks"] = [len(m._forward_pre_hooks) + len(m._forward_hooks) for m in model.modules()]
    found["own"] = sorted(vars(model))
    found["parameters"] = [(id(p), p.stride(), p.dtype, p.requires_grad) for p in model.parameters()]
    found["values"] = [p.detach().clone() for p in model.parameters()]
    optimizer = getattr(job, "optimizer", None)
    if optimizer is not None:
        found["groups"] = [{k: v for k, v in g.items() if k != "params"} for g in optimizer.param_groups]
        found["members"] = [[id(p) for p in g["params"]] for g in optimizer.param_groups]
        found["slots"] = [
            (id(v), v.stride()) for s in optimizer.state.values() for v in s.values() if torch.is_tensor(v)
        ]
        found["slot values"] = [v.clone() for s in optimizer.state.values() for v in s.values() if torch.is_tensor(v)]
        found["step"] = vars(optimizer).get("step")
    return found


def same(one: dict[str, Any], other: dict[str, Any]) -> list[str]:
    """What differs."""
    found = []
    for key, value in one.items():
        now = other[key]
        if key in ("values", "slot values"):
            if not all(torch.equal(a, b) for a, b in zip(value, now, strict=True)):
                found.append(key)
        elif value != now:
            found.append(f"{key}: {value} -> {now}")
    return found
