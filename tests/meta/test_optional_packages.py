"""The suite can be collected without any optional package: what is missing is skipped by its name, never an import error."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from functools import cache
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TESTS = ROOT / "tests"
NOT_BY_MODULE = {"py-spy"}  # a program, not a module


def optional() -> dict[str, list[str]]:
    """The modules of each optional package that is installed here; what is not installed is hidden already."""
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    wanted = {re.split(r"[<>=~! ]", p)[0].lower() for name, each in extras.items() if name != "dev" for p in each}
    found: dict[str, list[str]] = {}
    for module, packages in packages_distributions().items():
        for package in {p.lower() for p in packages} & (wanted | {"torch"}) - NOT_BY_MODULE:
            found.setdefault(package, []).append("google.protobuf" if module == "google" else module)
    return {package: sorted(m for m in modules if not m.startswith("_")) for package, modules in found.items()}


OPTIONAL = optional()


@cache
def source(path: Path) -> str:
    """A file of tests with the files of tests that it imports."""
    text = path.read_text(encoding="utf-8")
    inner = [
        TESTS.parent / f"{name.replace('.', '/')}.py"
        for name in re.findall(r"^from (tests\.[\w.]+) import", text, re.M)
    ]
    return "\n".join([text, *(source(p) for p in inner if p.is_file() and p != path)])


def asking_for(modules: list[str]) -> list[str]:
    """Files that import one of the modules, or look whether they could."""
    names = "|".join(re.escape(m) for m in modules)
    asks = re.compile(rf"""^\s*(?:import|from) (?:{names})\b|(?:importorskip|find_spec)\(["'](?:{names})\b""", re.M)
    return sorted(str(p) for p in TESTS.rglob("test_*.py") if asks.search(source(p)))


def collected(hidden: list[str], where: list[str]) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest", "-p", "tests.hidden", "-p", "no:cacheprovider", "--collect-only", "-qq"]
    env = {**os.environ, "STALLWISE_HIDE": " ".join(hidden), "PYTHONPATH": str(ROOT / "src")}
    return subprocess.run([*command, *where], cwd=ROOT, env=env, capture_output=True, text=True, timeout=300)


def test_the_suite_is_collected_without_any_of_them() -> None:
    done = collected([m for modules in OPTIONAL.values() for m in modules], [str(TESTS)])
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]


@pytest.mark.parametrize("package", sorted(OPTIONAL))
def test_the_tests_that_ask_for_a_package_are_collected_without_it(package: str) -> None:
    if not (files := asking_for(OPTIONAL[package])):
        pytest.skip(f"no test asks for {package}")
    done = collected(OPTIONAL[package], files)
    assert done.returncode in (0, 5), done.stdout[-3000:] + done.stderr[-1000:]  # 5: all of it was skipped


def test_hidden_is_as_good_as_absent() -> None:
    """Neither an import nor a look for the spec finds it, and what is not hidden is found."""
    code = (
        "import tests.hidden, importlib.util as u\n"
        "assert u.find_spec('email') is None and u.find_spec('html') is not None\n"
        "try: import email.message\nexcept ModuleNotFoundError: print('absent')"
    )
    env = {**os.environ, "STALLWISE_HIDE": "email", "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, timeout=60)
    assert done.stdout == "absent\n", done.stderr
