"""What each trial does to a job, one by one. That every one applies, is undone and fails gracefully is in test_matrix."""

from __future__ import annotations

import copy
import importlib.util
from pathlib import Path
from typing import Any

import pytest

if importlib.util.find_spec("torch") is None:
    pytest.skip("needs CPU PyTorch: pip install torch", allow_module_level=True)

import torch
from tests.recorder.trials.jobs import Answering, Training, looked_at, recorded, same, state
from torch import nn

from stallwise.causes import all_rules
from stallwise.experiment.change import Undo
from stallwise.experiment.trials import all_changes

pytestmark = [pytest.mark.torch]
NAMES = [c.name for c in all_changes()]


def change_named(name: str) -> Any:
    return next(c for c in all_changes() if c.name == name)


def test_every_trial_says_what_it_is() -> None:
    causes = {r.cause for r in all_rules()}
    assert len(NAMES) == len(set(NAMES)) >= 20
    for change in all_changes():
        assert change.name and change.title
        assert set(change.causes) <= causes, change.name
        assert change.needs or change.name == "nothing"
        assert set(change.instead_of) <= set(NAMES), change.name


@pytest.mark.parametrize("name", [c.name for c in all_changes() if not c.alters])
def test_what_leaves_the_training_as_it_is_gives_the_same_numbers(name: str, tmp_path: Path) -> None:
    plain = Training()
    plain.step(12)
    with recorded(tmp_path) as recorder:
        job = Training()
        change = change_named(name)
        scene = looked_at(job, recorder, change)  # five steps
        for _ in range(2):
            undo = Undo()
            change.apply(scene, undo)
            job.step(2)
            undo.back()
            job.step()
        job.step()
    assert job.losses == plain.losses
    assert all(torch.equal(a, b) for a, b in zip(job.model.parameters(), plain.model.parameters(), strict=True))


def test_a_bf16_step_computes_in_bf16_and_forgets_its_casts(tmp_path: Path) -> None:
    with recorded(tmp_path) as recorder:
        job = Training()
        change = change_named("bf16-autocast")
        scene = looked_at(job, recorder)
        x = next(job.batches)[0]
        as_is, undo = job.model(x), Undo()
        change.apply(scene, undo)
        assert job.model(x).dtype is torch.bfloat16
        job.step()
        change.on_step(scene)
        after = job.model(x)
        undo.back()
        assert job.model(x).dtype is torch.float32
        with torch.autocast("cpu", torch.bfloat16):
            assert torch.equal(after, job.model(x))  # the weights of now, not casts of those before
        assert as_is.dtype is torch.float32


class Casting(Training):
    """Its forward pass stands in an autocast of its own, and a layer protects itself with another."""

    def __init__(self, **context: Any) -> None:
        super().__init__()
        self.context = context
        self.types: list[torch.dtype] = []
        self.model.head.register_forward_hook(lambda m, args, out: self.types.append(out.dtype))
        middle = self.model.middle.forward

        def protected(x: torch.Tensor) -> torch.Tensor:
            with torch.autocast("cpu", enabled=False):
                out = middle(x.float())
            self.types.append(out.dtype)
            return out

        self.model.middle.forward = protected  # type: ignore[method-assign]

    def step(self, count: int = 1) -> None:
        for _ in range(count):
            x, y = next(self.batches)
            with torch.autocast("cpu", **self.context):
                loss = nn.functional.cross_entropy(self.model(x), y)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()


@pytest.mark.parametrize(
    "context", [{"dtype": torch.float32}, {"enabled": False}, {"enabled": False, "dtype": torch.float16}]
)
@pytest.mark.filterwarnings("ignore:In CPU autocast")
def test_an_autocast_that_narrows_nothing_is_no_mixed_precision_and_is_switched_to_bf16(
    context: dict[str, Any], tmp_path: Path
) -> None:
    with recorded(tmp_path) as recorder:
        job, change, undo = Casting(**context), change_named("bf16-autocast"), Undo()
        scene = looked_at(job, recorder)
        assert not scene.autocast and change.refuses(scene) is None
        job.types.clear()
        change.apply(scene, undo)
        job.step()
        undo.back()
        assert job.types[:2] == [torch.float32, torch.bfloat16]  # what protects itself does not narrow, the head does
        job.types.clear()
        job.step()
        assert set(job.types) == {torch.float32}


def test_an_autocast_that_narrows_is_mixed_precision(tmp_path: Path) -> None:
    with recorded(tmp_path) as recorder:
        job, change = Casting(dtype=torch.bfloat16), change_named("bf16-autocast")
        scene = looked_at(job, recorder)
        assert scene.autocast and "on already" in (change.refuses(scene) or "")


def test_the_last_batch_comes_again_and_the_loader_goes_on_where_it_was(tmp_path: Path) -> None:
    with recorded(tmp_path) as recorder:
        job = Training()
        change = change_named("last-batch-again")
        scene = looked_at(job, recorder)
        undo = Undo()
        change.apply(scene, undo)
        first, second = next(job.batches), next(job.batches)
        assert first is second
        undo.back()
        third = next(job.batches)
        assert third is not first and not torch.equal(third[0], first[0])


def test_two_batches_become_one(tmp_path: Path) -> None:
    with recorded(tmp_path) as recorder:
        job = Training()
        change = change_named("double-microbatch")
        scene = looked_at(job, recorder)
        undo = Undo()
        change.apply(scene, undo)
        x, y = next(job.batches)
        undo.back()
        assert x.shape[0] == 8 and y.shape[0] == 8 and change.work_ratio == 2.0
        assert next(job.batches)[0].shape[0] == 4


def test_fused_steps_count_on_where_the_others_stopped(tmp_path: Path) -> None:
    with recorded(tmp_path) as recorder:
        job = Training()
        change = change_named("fused-optimizer")
        scene = looked_at(job, recorder)
        counts = [s["step"] for s in job.optimizer.state.values()]
        undo = Undo()
        change.apply(scene, undo)
        assert all(g["fused"] for g in job.optimizer.param_groups)
        job.step(2)
        undo.back()
        after = [s["step"] for s in job.optimizer.state.values()]
        assert all(a is b for a, b in zip(counts, after, strict=True)) and float(after[0]) == 7.0


@pytest.mark.parametrize("name", ["bf16-weights", "double-batch"])
def test_inference_gives_the_same_answers_afterwards(name: str, tmp_path: Path) -> None:
    with recorded(tmp_path) as recorder:
        job = Answering()
        change = change_named(name)
        scene = looked_at(job, recorder)
        assert not scene.trains and change.refuses(scene) is None
        before, undo = state(job), Undo()
        change.apply(scene, undo)
        way = vars(job.model).get("_stallwise_way")
        with torch.no_grad():
            changed = way(job.batch) if way else job.model(job.batch)
        undo.back()
        job.step()
        assert same(before, state(job)) == []
        assert torch.equal(job.answers[-1], job.answers[0])
        assert changed.shape == job.answers[0].shape and torch.allclose(changed, job.answers[0], atol=0.05)


@pytest.mark.parametrize("name", ["bf16-weights", "double-batch"])
def test_a_model_with_a_cache_keeps_its_type_and_its_batch(name: str, tmp_path: Path) -> None:
    class Cache:
        """Remembers from call to call."""

    class Answers(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.line = torch.nn.Linear(2, 2)

        def forward(self, x: torch.Tensor, cache: Cache | None = None) -> torch.Tensor:
            return self.line(x)

    class Job:
        model = Answers().eval()

        def step(self, count: int = 1) -> None:
            self.model(torch.ones(1, 2), cache=Cache())

    with recorded(tmp_path) as recorder:
        job = Job()
        scene = looked_at(job, recorder)
        assert "cache" in (change_named(name).refuses(scene) or "")
        assert "_compiled_call_impl" not in vars(job.model)


def test_no_gradient_sync_overrides_the_loop_and_gives_back_what_it_set(tmp_path: Path) -> None:
    class Wrapped(torch.nn.Module):
        """Has what DistributedDataParallel has."""

        def __init__(self) -> None:
            super().__init__()
            self.inner = torch.nn.Linear(2, 2)
            self.require_backward_grad_sync = True

        def no_sync(self) -> None:
            raise NotImplementedError

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.inner(x)

    class Job:
        model = Wrapped()

        def step(self, count: int = 1) -> None:
            self.model(torch.ones(1, 2))

    with recorded(tmp_path) as recorder:
        job, change, undo = Job(), change_named("no-gradient-sync"), Undo()
        scene = looked_at(job, recorder)
        assert change.refuses(scene) is None
        change.apply(scene, undo)
        assert job.model.require_backward_grad_sync is False
        job.model.require_backward_grad_sync = True  # the loop's own line for accumulation
        assert job.model.require_backward_grad_sync is False
        undo.back()
        assert job.model.require_backward_grad_sync is True
        assert "require_backward_grad_sync" not in vars(Wrapped)


def test_attention_and_cache_of_transformers_are_switched_and_back(tmp_path: Path) -> None:
    class Config:
        _attn_implementation = "eager"
        cache_implementation = None

    class Model(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.line = torch.nn.Linear(2, 2)
            self.config = Config()
            self.config._attn_implementation = "eager"
            self.generation_config = Config()

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.line(x)

    class Job:
        model = Model()

        def step(self, count: int = 1) -> None:
            self.model(torch.ones(1, 2))

    with recorded(tmp_path) as recorder:
        job = Job()
        scene = looked_at(job, recorder)
        for name, owner, switch, value in (
            ("fused-attention", job.model.config, "_attn_implementation", "sdpa"),
            ("static-cache", job.model.generation_config, "cache_implementation", "static"),
        ):
            change, undo = change_named(name), Undo()
            assert change.refuses(scene) is None
            before = copy.copy(getattr(owner, switch))
            change.apply(scene, undo)
            assert getattr(owner, switch) == value
            undo.back()
            assert getattr(owner, switch) == before


def test_threads_are_raised_and_given_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    change = change_named("more-threads")
    monkeypatch.setattr(change, "_cores", lambda: torch.get_num_threads() + 1)
    with recorded(tmp_path) as recorder:
        job = Training()
        scene = looked_at(job, recorder)
        before, undo = state(job), Undo()
        assert change.refuses(scene) is None
        change.apply(scene, undo)
        assert torch.get_num_threads() == before["threads"] + 1
        undo.back()
        assert same(before, state(job)) == []


def test_what_the_user_has_replaced_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import torch.utils.checkpoint

    def own_checkpoint(function: Any, *args: Any, **kwargs: Any) -> Any:
        return function(*args)

    monkeypatch.setattr(torch.utils.checkpoint, "checkpoint", own_checkpoint)
    with recorded(tmp_path) as recorder:
        change = change_named("no-recompute")
        job = Training()
        scene = looked_at(job, recorder, change)
        assert job.losses and "your code has replaced" in (change.refuses(scene) or "")


@pytest.mark.parametrize("reentrant", [True, False])
def test_recomputing_under_a_name_of_the_jobs_own_is_seen_and_left_out(tmp_path: Path, reentrant: bool) -> None:
    from torch.utils.checkpoint import checkpoint as again  # as jobs and libraries do, before anything is tried

    class Counted(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.middle, self.times = nn.Linear(4, 4), nn.Linear(4, 4), 0

        def part(self, x: torch.Tensor) -> torch.Tensor:
            self.times += 1
            return torch.tanh(self.middle(x))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return again(self.part, self.first(x), use_reentrant=reentrant)  # type: ignore[no-any-return]

    with recorded(tmp_path) as recorder:
        change, job = change_named("no-recompute"), Training()
        job.model = Counted()
        job.optimizer = torch.optim.SGD(job.model.parameters(), lr=0.1)

        def step(count: int = 1) -> None:
            for _ in range(count):
                loss = job.model(torch.ones(2, 4)).sum()
                job.optimizer.zero_grad()
                loss.backward()
                job.optimizer.step()

        job.step = step  # type: ignore[method-assign]
        scene = looked_at(job, recorder, change)
        assert change.refuses(scene) is None
        undo, times = Undo(), []
        for changed in (False, True, False):
            job.model.times = 0
            if changed:
                change.apply(scene, undo)
            step()
            undo.back()
            times.append(job.model.times)
        assert times == [2, 1, 2]


def test_more_workers_give_the_batches_of_the_same_loader_and_leave_with_the_trial(tmp_path: Path) -> None:
    with recorded(tmp_path) as recorder:
        job, change, undo, around = Training(), change_named("loader-workers"), Undo(), Undo()
        scene = looked_at(job, recorder)
        assert change.refuses(scene) == "its loader is not known"
        scene.loader_of = lambda iterator: job.loader
        assert change.refuses(scene) is None and "num_workers=" in change.needs
        change.begin(scene, around)
        change.apply(scene, undo)
        seen = [next(job.batches)[1].tolist() for _ in range(3)]
        assert seen == [y.tolist() for _, (_, y) in zip(range(3), job.loader, strict=False)]
        own = list(change._own.values())
        assert len(own) == 1 and own[0]._num_workers >= 1
        undo.back()
        next(job.batches)
        around.back()
        assert not change._own and all(not w.is_alive() for w in own[0]._workers)
