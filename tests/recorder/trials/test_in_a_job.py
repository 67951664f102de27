"""Whole sessions in real jobs on the CPU: what fails is caught, what is undone is undone, and the job computes what it did."""

from __future__ import annotations

import importlib.util
import io
from pathlib import Path
from typing import Any

import pytest

if importlib.util.find_spec("torch") is None:
    pytest.skip("needs CPU PyTorch: pip install torch", allow_module_level=True)

import torch
from tests.recorder.trials.jobs import Answering, Training, recorded, same, state

from stallwise.experiment.change import Change, Undo
from stallwise.experiment.guard import WAY
from stallwise.experiment.options import Options
from stallwise.experiment.rehearsal import Rehearsal
from stallwise.experiment.results import Results
from stallwise.experiment.scene import Scene
from stallwise.experiment.session import Session
from stallwise.experiment.trials import all_changes

pytestmark = [pytest.mark.torch]


STEP_S = 0.01


class Job:
    """A job with a session that hears its steps, on a clock of ours: every step takes as long."""

    def __init__(self, job: Any, recorder: Any, folder: Path, changes: list[Change], **options: Any) -> None:
        self.job = job
        self.scene = Scene(torch, recorder, folder=str(folder))
        self.out = Results(str(folder))
        self.session = Session(self.scene, changes, Options(**{"budget_s": 3.0, **options}), self.out)
        self.now_s = 0.0
        recorder.now = lambda: self.now_s
        recorder.last_end = 0.0
        self.session._now = self.session._trying._now = self.session._settling._now = recorder.now
        recorder.step_listeners.append(self.session.on_step)

    def step(self) -> None:
        self.now_s += STEP_S
        self.job.step()

    def run(self, most: int = 3000) -> dict[str, Any]:
        for _ in range(most):
            self.step()
            if self.session.over:
                break
        return {r.name: r for r in self.out.trials}


class Broken(Change):
    """Fails in a call of the job's own, after some good ones."""

    name = title = needs = "broken"

    def __init__(self, where: str, error: type[Exception] = RuntimeError, text: str = "does not work here") -> None:
        self._where, self._error, self._text = where, error, text
        self._calls = 0

    def _maybe(self) -> None:
        self._calls += 1
        if self._calls >= 5:
            raise self._error(self._text)

    def apply(self, scene: Any, undo: Undo) -> None:
        if self._where == "forward":
            root = scene.roots[0]

            def way(*args: Any, **kwargs: Any) -> Any:
                self._maybe()
                return root._call_impl(*args, **kwargs)

            vars(root)[WAY] = way
            undo.later(lambda: root.__dict__.pop(WAY, None))
        elif self._where == "backward":
            undo.wrap(torch.Tensor, "register_hook", lambda call: call)  # any change
            hook = scene.roots[0].head.weight.register_hook(lambda grad: self._maybe())
            undo.later(hook.remove)
        else:
            optimizer = scene.optimizers[0]
            group = optimizer.param_groups[0]
            before = group["lr"]
            group["lr"] = torch.tensor([1.0, 2.0]) if self._calls >= 5 else before  # no optimizer takes two
            self._calls += 3
            undo.later(lambda: group.update(lr=before))


@pytest.mark.parametrize("where", ["forward", "backward", "optimizer"])
def test_a_change_that_fails_inside_the_job_is_undone_and_the_job_goes_on(where: str, tmp_path: Path) -> None:
    with recorded(tmp_path) as recorder:
        job = Job(Training(), recorder, tmp_path, [Broken(where)])
        before = None
        for _ in range(400):
            job.step()
            if before is None and len(job.job.losses) == 10:
                before = state(job.job)
            if job.session.over:
                break
        found = {r.name: r for r in job.out.trials}["broken"]
        assert found.state == "failed" and found.why
        after = state(job.job)
        assert before is not None and set(same(before, after)) <= {"values", "slot values"}
        losses = len(job.job.losses)
        job.job.step(3)
        assert len(job.job.losses) == losses + 3 and all(x == x for x in job.job.losses)


def test_out_of_memory_in_a_forward_pass_is_caught_and_told(tmp_path: Path) -> None:
    with recorded(tmp_path) as recorder:
        hungry = Broken("forward", torch.OutOfMemoryError, "CUDA out of memory. Tried to allocate 20.00 GiB")
        found = Job(Training(), recorder, tmp_path, [hungry]).run()["broken"]
        assert found.state == "out of memory" and "20.00 GiB" in found.why


def test_what_fails_as_is_belongs_to_the_job(tmp_path: Path) -> None:
    class Stops(Training):
        def step(self, count: int = 1) -> None:
            super().step(count)
            if len(self.losses) == 40:
                self.model(torch.ones(1, 2))

    with recorded(tmp_path) as recorder:
        nothing = next(c for c in all_changes() if c.name == "nothing")
        job = Job(Stops(), recorder, tmp_path, [nothing], repeat=5, only=("nothing",))
        with pytest.raises((RuntimeError, ValueError)):
            job.run()


def test_untouched_training_is_bit_identical_before_the_first_trial(tmp_path: Path) -> None:
    plain = Training()
    plain.step(60)
    with recorded(tmp_path) as recorder:
        job = Job(Training(), recorder, tmp_path, [c for c in all_changes() if c.name == "bf16-autocast"])
        while job.session._trying.current is None and len(job.job.losses) < 60:
            job.step()
        seen = len(job.job.losses)
        assert 10 < seen <= 60
        assert job.job.losses == plain.losses[:seen]
        job.session.stop()


def test_a_job_whose_training_is_left_as_it_is_ends_with_the_same_weights(tmp_path: Path) -> None:
    plain = Training()
    plain.step(400)
    with recorded(tmp_path) as recorder:
        kept = [c for c in all_changes() if not c.alters]
        job = Job(
            Training(), recorder, tmp_path, kept, keep_training=True, only=("nothing", "no-collector"), budget_s=1.5
        )
        assert not job.session.options.rehearsal(kept)
        job.run(400)
        job.job.step(400 - len(job.job.losses))
        assert any(r.estimate is not None for r in job.out.trials)
    assert job.job.losses == plain.losses
    assert all(torch.equal(a, b) for a, b in zip(job.job.model.parameters(), plain.model.parameters(), strict=True))


def test_an_inference_loop_is_tried_and_answers_as_before(tmp_path: Path) -> None:
    with recorded(tmp_path) as recorder:
        chosen = [c for c in all_changes() if c.name in ("double-batch", "bf16-weights", "last-batch-again")]
        job = Job(Answering(), recorder, tmp_path, chosen, budget_s=6.0)
        found = job.run(6000)
        assert job.out.about["kind"] == "inference"
        assert found["last-batch-again"].state == "not applicable"
        assert found["double-batch"].estimate is not None or found["double-batch"].state == "slower"
        job.job.step()
        assert torch.equal(job.job.answers[-1], job.job.answers[0])


def test_a_cached_batch_shows_what_a_slow_loader_costs(tmp_path: Path) -> None:
    """The loader of this job is slow by a clock that only it moves, so that the machine's own noise does not count."""
    now = [0.0]

    class Slow(Training):
        def __init__(self) -> None:
            super().__init__()
            data = self.loader.dataset
            plain = type(data).__getitem__

            class Late(type(data)):  # type: ignore[misc]
                def __getitem__(self, at: int) -> Any:
                    now[0] += 0.01  # four of them a batch
                    return plain(self, at)

            data.__class__ = Late

        def step(self, count: int = 1) -> None:
            now[0] += 0.01
            super().step(count)

    with recorded(tmp_path) as recorder:
        change = next(c for c in all_changes() if c.name == "last-batch-again")
        job = Job(Slow(), recorder, tmp_path, [change], budget_s=60.0)
        recorder.now = job.session._now = job.session._trying._now = job.session._settling._now = lambda: now[0]
        found = job.run()["last-batch-again"]
        assert found.state == "faster" and found.estimate.ratio == pytest.approx(5.0, rel=0.02)


def test_a_rehearsal_writes_no_checkpoint_and_no_event_file(tmp_path: Path) -> None:
    save = torch.save
    rehearsal = Rehearsal(str(tmp_path / "held"))
    rehearsal.begin()
    try:
        torch.save({"a": 1}, tmp_path / "model.pt")
        torch.serialization.save({"a": 1}, str(tmp_path / "other.pt"))
        buffer = io.BytesIO()
        torch.save({"a": 1}, buffer)  # a copy in memory is no checkpoint
        assert buffer.getbuffer().nbytes > 0
        assert not list(tmp_path.glob("*.pt"))
        assert rehearsal.held["torch.save"] == 2
    finally:
        rehearsal.end()
    assert torch.save is save
    torch.save({"a": 1}, tmp_path / "model.pt")
    assert (tmp_path / "model.pt").is_file()


def test_trackers_are_held_off_as_soon_as_they_are_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "wandb.py").write_text("said = []\ndef log(row):\n    said.append(row)\n")
    writer = tmp_path / "tensorboardX" / "event_file_writer.py"
    writer.parent.mkdir()
    (writer.parent / "__init__.py").write_text("")
    writer.write_text("class EventFileWriter:\n    def __init__(self, logdir, more=1):\n        self.logdir = logdir\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    for name in ("wandb", "tensorboardX", "tensorboardX.event_file_writer"):
        monkeypatch.delitem(__import__("sys").modules, name, raising=False)
    rehearsal = Rehearsal(str(tmp_path / "held"))
    rehearsal.begin()
    try:
        import tensorboardX.event_file_writer  # type: ignore[import-not-found]
        import wandb  # type: ignore[import-not-found]

        wandb.log({"loss": 1.0})
        assert wandb.said == [] and rehearsal.held["wandb.log"] == 1
        made = tensorboardX.event_file_writer.EventFileWriter("runs/mine")
        assert made.logdir.startswith(str(tmp_path / "held"))
    finally:
        rehearsal.end()
    wandb.log({"loss": 2.0})
    assert wandb.said == [{"loss": 2.0}]


def test_a_checkpoint_is_timed_in_a_scratch_folder_and_gone(tmp_path: Path) -> None:
    class Saving(Training):
        def step(self, count: int = 1) -> None:
            super().step(count)
            if len(self.losses) % 3 == 0:
                torch.save(self.model.state_dict(), tmp_path / "model.pt")

    rehearsal = Rehearsal(str(tmp_path / "held"))
    rehearsal.begin()
    try:
        with recorded(tmp_path / "run") as recorder:
            change = next(c for c in all_changes() if c.name == "no-checkpoint")
            (tmp_path / "run").mkdir(exist_ok=True)
            job = Job(Saving(), recorder, tmp_path / "run", [change])
            job.scene.held_off = rehearsal
            rehearsal.on_save = lambda: job.scene.saves.append(recorder.number)
            found = job.run()["no-checkpoint"]
            assert found.estimate is not None and found.more["steps_per_block"] % 3 == 0
    finally:
        rehearsal.end()
    assert not list(tmp_path.glob("*.pt")) and not list(tmp_path.glob(".stallwise*"))


@pytest.mark.parametrize("container", [False, True])
def test_compiling_really_compiles(container: bool, tmp_path: Path) -> None:
    from torch._dynamo.utils import counters

    class Plain(Answering):
        def __init__(self) -> None:
            super().__init__()
            self.model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(108, 4)) if container else self.model

    change = next(c for c in all_changes() if c.name == "compile")
    change.settings = {"backend": "eager"}
    with recorded(tmp_path) as recorder:
        job = Job(Plain(), recorder, tmp_path, [change])
        torch._dynamo.reset()
        before = counters["stats"]["unique_graphs"]
        found = job.run()["compile"]
        assert found.state != "failed", found.why
        assert counters["stats"]["unique_graphs"] > before
        assert WAY not in vars(job.job.model) and "_compiled_call_impl" not in vars(job.job.model)


@pytest.mark.slow
def test_a_compiled_model_is_tried_and_called_as_before_afterwards(tmp_path: Path) -> None:
    import shutil

    if shutil.which("g++") is None and shutil.which("c++") is None:
        pytest.skip("compiling for the CPU needs a C++ compiler")
    with recorded(tmp_path) as recorder:
        job = Job(Training(), recorder, tmp_path, [c for c in all_changes() if c.name == "compile"], budget_s=2.0)
        found = job.run()["compile"]
        assert found.state != "failed", found.why
        assert WAY not in vars(job.job.model) and "_compiled_call_impl" not in vars(job.job.model)
