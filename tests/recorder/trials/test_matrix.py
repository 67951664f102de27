"""Every trial, without exception: it applies, it is undone, and it fails gracefully, in a job with real models on the CPU."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

if importlib.util.find_spec("torch") is None:
    pytest.skip("needs CPU PyTorch: pip install torch", allow_module_level=True)

import time

import torch
from tests.recorder.trials.homes import FOR_DEVICES, among_strangers, at_home, prepared
from tests.recorder.trials.jobs import Answering, looked_at, recorded, same, state

from stallwise.experiment import results
from stallwise.experiment.block import Trying
from stallwise.experiment.change import Undo
from stallwise.experiment.ranks import Alone
from stallwise.experiment.trials import all_changes

pytestmark = [pytest.mark.torch]
NAMES = [c.name for c in all_changes()]
MOVED = ["values", "slot values"]  # training goes on: weights and the optimizer's state, nothing else


def named(name: str) -> Any:
    return next(c for c in all_changes() if c.name == name)


def everything(job: Any, scene: Any) -> dict[str, Any]:
    """The state of the job, and what only some jobs have."""
    model = getattr(job, "inner", job.model)
    return {
        **state(job),
        "config": vars(getattr(model, "config", None) or SimpleNamespace()).copy(),
        "generation": vars(getattr(model, "generation_config", None) or SimpleNamespace()).copy(),
        "sync": getattr(job.model, "require_backward_grad_sync", None),
        "saving": getattr(scene.held_off, "saving", None),
        "inner": sorted(vars(model)),
    }


def trying_of(scene: Any) -> Trying:
    return Trying(scene, None, time.perf_counter, Alone(), 0.95)


@pytest.mark.parametrize("name", NAMES)
def test_it_applies_is_in_force_and_is_undone(name: str, tmp_path: Path) -> None:
    with recorded(tmp_path) as recorder:
        change = named(name)
        with at_home(name, change) as job:
            scene = looked_at(job, recorder, change)
            prepared(name, scene, recorder)
            refused = change.refuses(scene)
            assert bool(refused) is (name in FOR_DEVICES), refused
            around, undo = Undo(), Undo()
            before = everything(job, scene)
            change.begin(scene, around)
            as_is = everything(job, scene)
            change.apply(scene, undo)
            assert bool(same(as_is, everything(job, scene))) is (name != "nothing")
            for _ in range(2):
                job.step()
                change.on_step(scene)
            undo.back()
            assert set(same(as_is, everything(job, scene))) == set([] if isinstance(job, Answering) else MOVED)
            around.back()
            undo.back()  # twice is once
            assert set(same(before, everything(job, scene))) <= set(MOVED)


@pytest.mark.parametrize("name", NAMES)
def test_where_it_raises_half_way_all_of_it_is_undone(name: str, tmp_path: Path) -> None:
    with recorded(tmp_path) as recorder:
        change = named(name)
        with at_home(name, change) as job:
            scene = looked_at(job, recorder, change)
            prepared(name, scene, recorder)
            before, apply, trying = everything(job, scene), change.apply, trying_of(scene)

            def half_way(scene: Any, undo: Undo) -> None:
                apply(scene, undo)
                raise RuntimeError("no such kernel")

            change.apply = half_way
            trying.begin(change)
            trying.switch(True)
            assert trying.broken is not None and trying.broken.state == results.FAILED
            assert "no such kernel" in trying.broken.text and not trying.changed
            trying.leave()
            assert same(before, everything(job, scene)) == []
            job.step()


@pytest.mark.parametrize("name", NAMES)
def test_where_memory_runs_out_in_force_it_is_undone_and_the_job_goes_on(name: str, tmp_path: Path) -> None:
    with recorded(tmp_path) as recorder:
        change = named(name)
        with at_home(name, change) as job:
            scene = looked_at(job, recorder, change)
            prepared(name, scene, recorder)
            before, trying = everything(job, scene), trying_of(scene)

            def run_out(*_: Any) -> None:
                if trying.changed:
                    raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 GiB")

            answers = isinstance(job, Answering)
            head = getattr(job, "inner", job.model).head
            hook = head.register_forward_pre_hook(run_out) if answers else head.weight.register_hook(run_out)
            trying.begin(change)
            trying.switch(True)
            job.step()
            assert trying.broken is not None and trying.broken.state == results.MEMORY, trying.broken
            assert not trying.changed
            job.step()
            trying.leave()
            hook.remove()
            assert set(same(before, everything(job, scene))) <= set(MOVED)


@pytest.mark.parametrize("name", [name for name in NAMES if name != "nothing"])
def test_where_it_does_not_apply_it_says_why(name: str, tmp_path: Path) -> None:
    with recorded(tmp_path) as recorder:
        change = named(name)
        with among_strangers(name, change) as job:
            scene = looked_at(job, recorder, change)
            before = state(job)
            refused = change.refuses(scene)
            assert isinstance(refused, str) and len(refused.split()) >= 3
            assert same(before, state(job)) == []
