"""The loss of changed blocks: within noise it says nothing, beyond it the change is undone and no gain."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch", reason="needs CPU PyTorch: pip install torch")

import torch
from tests.recorder.trials.jobs import Training, looked_at, recorded

from stallwise.experiment.block import Failed, Trying
from stallwise.experiment.change import Change, Undo
from stallwise.experiment.numerics import Losses
from stallwise.experiment.ranks import Alone


def losses(before: list[float], after: list[float]) -> Losses:
    found = Losses(torch)
    for one, other in zip(before, after, strict=True):
        for changed, value in ((False, one), (True, other)):
            found.add(torch.tensor(value))
            found.block_ended(changed)
    return found


def test_rounding_and_noise_are_no_difference() -> None:
    chance = random.Random(0)
    before = [2.3 - 0.01 * n + chance.gauss(0, 0.05) for n in range(10)]
    assert losses(before, [b + chance.gauss(0, 0.05) for b in before]).differ() is None
    assert losses([2.3] * 8, [2.3001] * 8).differ() is None


def test_another_model_is_one() -> None:
    chance = random.Random(0)
    before = [2.3 + chance.gauss(0, 0.02) for _ in range(8)]
    said = losses(before, [b + 1.0 for b in before]).differ()
    assert said is not None and "2.294 as is and 3.294 changed" in said


def test_a_loss_that_is_no_number_is_one_at_once_but_not_where_the_job_has_none() -> None:
    found = losses([2.3], [2.3])
    found.add(torch.tensor(float("nan")))
    assert found.block_ended(True) == "the loss became nan"
    theirs = Losses(torch)
    theirs.add(torch.tensor(float("nan")))
    assert theirs.block_ended(True) is None
    theirs.add(torch.ones(3))  # no scalar: a backward pass with gradients of its own
    assert theirs.block_ended(True) is None


class Wrong(Change):
    """Scales the inputs: another loss."""

    name = title = "wrong"

    def apply(self, scene: Any, undo: Undo) -> None:
        undo.wrap(torch.nn.functional, "cross_entropy", lambda call: lambda *a, **k: 7.0 + call(*a, **k))


def test_a_change_of_the_loss_is_undone_and_said(tmp_path: Path) -> None:
    with recorded(tmp_path) as recorder:
        job = Training()
        scene = looked_at(job, recorder, Wrong())
        scene.step_s = 1e-3
        trying = Trying(scene, None, lambda: 0.0, Alone(), 0.95)
        trying.begin(Wrong())
        original = torch.nn.functional.cross_entropy

        def pairs() -> None:
            for changed in (False, True) * 8:
                block = trying.block(changed, 2, 1)
                try:
                    count = next(block)
                    while True:
                        job.step(count)
                        count = block.send(None)  # type: ignore[arg-type]
                except StopIteration:
                    continue

        with pytest.raises(Failed, match="as is and"):
            pairs()
        assert not trying.changed and torch.nn.functional.cross_entropy is original
        trying.leave()


def test_a_loop_without_an_optimizer_trains_all_the_same(tmp_path: Path) -> None:
    class ByHand(Training):
        def step(self, count: int = 1) -> None:
            for _ in range(count):
                x, y = next(self.batches)
                loss = torch.nn.functional.cross_entropy(self.model(x), y)
                own = list(self.model.parameters())
                with torch.no_grad():
                    for p, g in zip(own, torch.autograd.grad(loss, own), strict=True):
                        p -= 0.01 * g

    with recorded(tmp_path) as recorder:
        assert looked_at(ByHand(), recorder).trains
