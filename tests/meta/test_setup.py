"""`make test` sets everything up by itself, one line a step, and the gate lets it."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def setup(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """.ci/setup.py with nothing installed and a log of its own."""
    spec = importlib.util.spec_from_file_location("setup_of_the_tests", ROOT / ".ci" / "setup.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "LOG", tmp_path / ".venv" / "setup.log")
    monkeypatch.setattr(module, "ROOT", tmp_path)
    (tmp_path / "pyproject.toml").write_text((ROOT / "pyproject.toml").read_text(encoding="utf-8"), encoding="utf-8")
    return module


def without(monkeypatch: pytest.MonkeyPatch, setup: ModuleType, refused: Callable[[str], bool]) -> list[str]:
    """Commands that were asked for; those whose text is refused fail, and torch is not there yet."""
    asked: list[str] = []

    def quietly(command: list[str]) -> bool:
        asked.append(" ".join(command))
        return "importlib.metadata" not in asked[-1] and not refused(asked[-1])

    monkeypatch.setattr(setup, "quietly", quietly)
    return asked


def test_one_package_that_cannot_be_had_costs_its_own_tests_only(
    setup: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = without(monkeypatch, setup, lambda c: "polars" in c or "ray" in c)
    monkeypatch.setattr(setup, "chromium", lambda: True)
    setup.extras()
    printed = capsys.readouterr().out
    assert any(c.endswith("pandas>=2") for c in asked), "the others of its group are installed one by one"
    assert "tests that need polars, ray are skipped" in printed
    assert all(
        re.match(r"installing .+ \.\.\. (done in |not to be had here \()\d+ s|tests that need", x)
        for x in printed.splitlines()
    )


def test_torch_is_the_cpu_build_where_there_is_one(setup: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = without(monkeypatch, setup, lambda c: False)
    assert setup.torch() and asked[-1].endswith(f"torch=={setup.TORCH}+cpu")
    asked = without(monkeypatch, setup, lambda c: "+cpu" in c)
    assert setup.torch() and asked[-1].endswith(f"torch=={setup.TORCH}")
    without(monkeypatch, setup, lambda c: "torch" in c)
    assert not setup.torch()


def test_without_the_tests_own_tools_it_stops_and_says_why(
    setup: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(setup, "PIP", [sys.executable, "-c", "raise SystemExit('no route to any index')"])
    with pytest.raises(SystemExit, match=r"cannot go on without it; all of it is in \.venv/setup\.log"):
        setup.dev()
    assert "no route to any index" in capsys.readouterr().out


def test_a_python_that_is_too_old_is_named(setup: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(setup.sys, "version_info", (3, 9, 2))
    with pytest.raises(SystemExit, match=r"needs Python 3\.11, this is 3\.9; name another: make PYTHON="):
        setup.package()


def test_chromium_is_asked_of_apt_by_root_alone(
    setup: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("STALLWISE_CHROMIUM", raising=False)
    monkeypatch.setattr(setup.shutil, "which", lambda name: None if "chrom" in name else name)
    asked = without(monkeypatch, setup, lambda c: False)
    monkeypatch.setattr(setup.os, "geteuid", lambda: 1000)
    assert not setup.chromium() and not asked
    assert "only root can install it" in capsys.readouterr().out
    monkeypatch.setattr(setup.os, "geteuid", lambda: 0)
    assert setup.chromium() and asked[-1].endswith("chromium")


def test_make_test_asks_for_everything_before_the_first_test() -> None:
    env = {k: v for k, v in os.environ.items() if not k.startswith("MAKE")}
    done = subprocess.run(
        ["make", "-n", "-B", "test"], cwd=ROOT, env=env, capture_output=True, text=True, check=True, timeout=60
    )
    steps = re.findall(r"setup\.py (\w+)|(-m pytest) -n", done.stdout)
    assert ["".join(s) for s in steps] == ["package", "dev", "extras", "-m pytest"]


def test_the_gate_begins_with_make_test() -> None:
    """Whatever is installed before it hides what a reader of the README would meet."""
    lines = (ROOT / ".ci" / "run").read_text(encoding="utf-8").splitlines()
    makes = [line for line in lines if re.search(r"\bmake |\bpip\b|apt-get", line) and not line.startswith("#")]
    assert makes[0].split() == ["timed", "make", "test"], makes
