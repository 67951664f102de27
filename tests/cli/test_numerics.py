"""`stallwise numerics` finds the layer whose range grows with the context, on a small model on the CPU."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

pytest.importorskip("torch")

MODEL = """
import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, grows):
        super().__init__()
        self.fc, self.out, self.grows = nn.Linear(32, 32), nn.Linear(32, 32), grows

    def forward(self, x):
        h = self.fc(x)
        if self.grows:
            h = h * torch.arange(1, x.shape[1] + 1).div(32).clamp(min=1)[None, :, None]
        return x + 0.1 * torch.tanh(self.out(h))


def model():
    torch.manual_seed(0)
    return nn.Sequential(*[Block(i == 1) for i in range(3)])


def inputs(length):
    torch.manual_seed(1)
    return torch.randn(2, length, 32)
"""


@pytest.fixture
def model_file(tmp_path: Path) -> str:
    path = tmp_path / "model.py"
    path.write_text(MODEL)
    return str(path)


def test_the_layer_that_outgrows_its_calibration_is_first(model_file: str, tmp_path: Path) -> None:
    from stallwise.doctor.examine import diagnose
    from stallwise.surfaces.cli.numerics import command

    done = CliRunner().invoke(command, [model_file, "--short", "32", "--long", "256", "--long", "1024", "--json"])
    assert done.exit_code == 0, done.output
    text = done.stdout
    rows = json.loads(text)["rows"]
    worst = max(rows, key=lambda r: r["rel_error"])
    assert worst["layer"] == "1.out" and worst["context"] == 1024
    assert worst["repair"] == "recalibrate with long inputs"
    assert all(r["repair"] == "none needed" for r in rows if r["layer"] != "1.out")
    saved = tmp_path / "layers.json"
    saved.write_text(text)
    diagnosis = diagnose(str(saved))
    assert diagnosis.ranked[0] == "fp8-saturation"
    assert "1.out" in diagnosis.findings[0].headline


def test_a_file_without_a_model_is_refused_with_a_hint(tmp_path: Path) -> None:
    from stallwise.errors import BadRequest
    from stallwise.surfaces.cli.numerics import command

    path = tmp_path / "empty.py"
    path.write_text("x = 1\n")
    done = CliRunner().invoke(command, [str(path)])
    assert isinstance(done.exception, BadRequest) and "model()" in done.exception.problem
