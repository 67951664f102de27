"""lint as people use linters: it goes on past a broken file, mends what is safe, and listens to its settings."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from stallwise.lint import lint, mend
from stallwise.surfaces.cli.lint import command

SLOW = """import torch
from torch.utils.data import DataLoader
torch.set_float32_matmul_precision("high")
device = "cuda"
loader = DataLoader(
    data,
    batch_size=8,  # small
    num_workers=4,
)
for x, y in loader:
    x = x.to(device)
    loss = criterion(model(x), y)
    optimizer.zero_grad(set_to_none=False)
    loss.backward()
    optimizer.step()
"""


def causes(text: str) -> set[str]:
    return {r.check for r in lint(text)}


def ask(*arguments: str, given: str | None = None) -> tuple[int, str]:
    result = CliRunner().invoke(command, list(arguments), input=given)
    return result.exit_code, result.output


def test_a_file_that_cannot_be_parsed_does_not_stop_the_others(tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text("def (:\n")
    (tmp_path / "latin.py").write_bytes(b"# \xe9\nx = 1\n")
    (tmp_path / "slow.py").write_text(SLOW)
    code, text = ask(str(tmp_path), "--json")
    told = json.loads(text[: text.rindex("}") + 1])
    assert code == 1 and told["files"] == 1 and len(told["problems"]) == 2
    assert any("broken.py" in p for p in told["problems"])


def test_what_is_safe_is_mended_and_nothing_else(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(SLOW)
    assert (
        "non_blocking" not in ask(str(script), "--diff")[1]
    )  # nothing is pinned yet: the copy would wait all the same
    assert ask(str(script), "--fix")[0] == 1 and ask(str(script), "--fix")[0] == 0
    text = script.read_text()
    assert "num_workers=4, pin_memory=True,\n)" in text and "batch_size=8,  # small" in text
    assert "x.to(device, non_blocking=True)" in text and "zero_grad(set_to_none=True)" in text
    assert ask(str(script)) == (0, "nothing found in 1 file\n")


def test_a_diff_changes_nothing(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(SLOW)
    code, text = ask(str(script), "--diff")
    assert code == 1 and "+    num_workers=4, pin_memory=True," in text
    assert script.read_text() == SLOW


@pytest.mark.parametrize(
    "call", ["DataLoader(d)", "DataLoader(d, 8)", "DataLoader(*a)", "DataLoader(d, shuffle=True,)", "DataLoader()",
             "DataLoader(\n    d,\n    # all of it\n)", "DataLoader(é, 8)"]
)  # fmt: skip
def test_every_shape_of_a_call_can_be_mended(call: str) -> None:
    text = f'device = "cuda"\nloader = {call}\n'
    again = mend(text, lint(text))
    assert "pin_memory=True" in again and "loader-unpinned" not in causes(again)


def test_standard_input(tmp_path: Path) -> None:
    code, text = ask("-", "--stdin-filename", "job.py", given=SLOW)
    assert code == 1 and "job.py:5:" in text
    done = subprocess.run(
        [sys.executable, "-m", "stallwise", "lint", "-", "--fix"], input=SLOW, text=True, capture_output=True
    )
    assert "pin_memory=True" in done.stdout and "remark" in done.stderr


def test_settings_of_the_project(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(
        '[tool.stallwise.lint]\nignore = ["loader-unpinned"]\nexclude = ["old"]\n'
        '[tool.stallwise.lint.per-file-ignores]\n"special.py" = ["dram-bandwidth-bound"]\n'
    )
    (tmp_path / "old").mkdir()
    for name in ("train.py", "special.py", "old/train.py"):
        (tmp_path / name).write_text(SLOW)
    rows = json.loads(ask(str(tmp_path), "--json")[1])
    assert rows["files"] == 2
    seen = {(Path(r["file"]).name, r["check"]) for r in rows["remarks"]}
    assert ("train.py", "gradients-zeroed-by-writing") in seen
    assert ("special.py", "gradients-zeroed-by-writing") not in seen
    assert not any(check == "loader-unpinned" for _, check in seen)
    assert ask(str(tmp_path), "--ignore", "dram-bandwidth-bound")[0] == 0


def test_a_wrong_setting_is_said(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text('[tool.stallwise.lint]\nselct = ["host-sync"]\n')
    (tmp_path / "train.py").write_text(SLOW)
    result = CliRunner().invoke(command, [str(tmp_path / "train.py")])
    assert "selct" in str(result.exception)


def test_noqa_is_heard() -> None:
    quiet = SLOW.replace("set_to_none=False)", "set_to_none=False)  # noqa: gradients-zeroed-by-writing")
    assert "gradients-zeroed-by-writing" in causes(SLOW) and "gradients-zeroed-by-writing" not in causes(quiet)
    other = SLOW.replace("set_to_none=False)", "set_to_none=False)  # noqa: E501")
    assert "gradients-zeroed-by-writing" in causes(other)


LOOP = "for x, y in loader:\n    loss = criterion(model(x), y)\n    loss.backward()\n    optimizer.step()\n    {}\n"


@pytest.mark.parametrize(
    ("line", "check"),
    [
        ("if loss > 10: continue", "branch-on-tensor"),
        ("if torch.isnan(loss): break", "branch-on-tensor"),
        ("if torch.isnan(loss).any(): break", "branch-on-tensor"),
        ("scale = 2 if loss > 1 else 1", "branch-on-tensor"),
        ("kept = loss[loss > 0]", "masked-indexing-in-loop"),
        ("y = y.to(device); kept = x[y > 0]", "masked-indexing-in-loop"),
        ("b = {k: v.cuda() for k, v in x.items()}; kept = x[b['labels'] != -100]", "masked-indexing-in-loop"),
        ("a = preds.detach().cpu().numpy()", "tensor-read-in-loop"),
        ("a = preds.cpu().numpy()", "tensor-read-in-loop"),
        ("a = loss.tolist()", "tensor-read-in-loop"),
    ],
)
def test_reads_that_hide(line: str, check: str) -> None:
    assert check in causes(LOOP.format(line))


@pytest.mark.parametrize(
    "line",
    [
        "if scheduler is not None: scheduler.step()",
        "if step > 10: pass",
        "if loss is None: continue",
        "out = torch.where(loss > 0, loss, 0)",
        "first = x[0]",
        "names = table[key]",
        "model = model.to(device)\n    deep = layers[depth > 3]",
    ],
)
def test_what_reads_nothing_is_left_alone(line: str) -> None:
    assert causes(LOOP.format(line)) <= causes(LOOP.format("pass"))


LIGHTNING = """
import lightning as L
class Model(L.LightningModule):
    def training_step(self, batch, index):
        loss = self.model(batch)
        self.log("loss", loss)
        return loss
    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=1e-3)  # device is cuda
"""


def test_lightning_and_good_defaults_are_left_alone() -> None:
    assert causes(LIGHTNING) == set()
