"""In trials, a step of a job that calls transformers' `generate()` is a whole answer."""

from __future__ import annotations

import importlib.util
import sys
import types
from pathlib import Path
from typing import Any

import pytest

if importlib.util.find_spec("torch") is None:
    pytest.skip("needs CPU PyTorch: pip install torch", allow_module_level=True)

import torch
from tests.recorder.trials.jobs import recorded

from stallwise.experiment.scene import Scene
from stallwise.experiment.whole_answers import MODULE, record_whole_answers
from stallwise.recorder import step_boundaries

pytestmark = [pytest.mark.torch]
TOKENS = 5


class GenerationMixin:
    """Calls the model once a token, by a method that was looked up when the answer began, as transformers does."""

    def generate(self, x: torch.Tensor) -> torch.Tensor:
        call: Any = self.__call__  # type: ignore[operator]
        for _ in range(TOKENS):
            x = call(x)
        return x


class Model(GenerationMixin, torch.nn.Module):
    """Has a part, so that a root and its parts differ."""

    def __init__(self) -> None:
        super().__init__()
        self.body = torch.nn.Linear(2, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.tanh(self.body(x))


def test_steps_are_answers_and_the_model_that_answers_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module = types.ModuleType(MODULE)
    module.GenerationMixin = GenerationMixin  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, MODULE, module)
    original, model = GenerationMixin.generate, Model().eval()
    with recorded(tmp_path) as recorder, torch.no_grad():
        record_whole_answers(recorder)
        for _ in range(step_boundaries.ENOUGH[step_boundaries.ANSWER]):
            model.generate(torch.ones(1, 2))
        assert recorder.boundaries.kind == step_boundaries.ANSWER
        scene, before = Scene(torch, recorder), recorder.number
        scene.look(())
        for _ in range(3):
            model.generate(torch.ones(1, 2))
            scene.step()
        scene.looked()
        assert recorder.number - before == 3
        assert scene.roots == [model]
    assert GenerationMixin.generate is original
