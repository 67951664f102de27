"""Data flows one way: who may import whom, checked on the source itself."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2] / "src" / "stallwise"

EVERYWHERE = {"late"}  # numpy at its first use
# A package may import itself and these.
MAY_IMPORT = {
    "late": set(),
    "errors": set(),
    "tables": set(),
    "units": {"tables", "errors"},
    "progress": {"units"},
    "evidence": {"units", "errors"},
    "specs": {"tables", "units", "errors"},
    "readers": {"tables", "evidence", "specs", "units", "errors"},
    "meaning": {"tables", "evidence", "specs", "units", "errors"},
    "costs": {"tables", "specs", "units", "errors"},
    # A measure replays the trace it looks at: `sim.replay` is physics over columns and knows no names.
    "measures": {"sim", "evidence", "meaning", "costs", "specs", "units", "errors"},
    "findings": {"evidence", "units", "errors"},
    "rules": {"tables", "findings", "evidence", "units", "errors"},
    "sim": {"evidence", "costs", "specs", "units", "errors"},
    "search": {"tables", "sim", "evidence", "costs", "specs", "progress", "units", "errors"},
    # Of `instrument` the doctor takes Student's quantile alone: a trend is judged as trials are.
    "doctor": {
        "tables",
        "instrument",
        "rules",
        "measures",
        "meaning",
        "readers",
        "findings",
        "evidence",
        "costs",
        "specs",
        "search",
        "sim",
        "progress",
        "units",
        "errors",
    },
    "render": {"findings", "evidence", "search", "specs", "units", "errors"},
    "instrument": set(),
    "probe": {"specs", "units", "errors"},
    "drill": {
        "doctor",
        "findings",
        "evidence",
        "sim",
        "search",
        "costs",
        "specs",
        "readers",
        "meaning",
        "measures",
        "units",
        "errors",
    },
}
ANYTHING = {"cli", "web", "__main__", "__init__", "lint", "mcp", "notebook"}


def imports_of(path: Path) -> set[str]:
    """The packages of ours that a file imports."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        for name in names:
            parts = name.split(".")
            if parts[0] == "stallwise" and len(parts) > 1:
                found.add(parts[1])
    return found


FILES = sorted(ROOT.rglob("*.py"))


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(ROOT)))
def test_a_file_imports_only_what_its_layer_may_see(path: Path) -> None:
    layer = path.relative_to(ROOT).parts[0].removesuffix(".py")
    if layer in ANYTHING:
        return
    too_far = imports_of(path) - MAY_IMPORT[layer] - EVERYWHERE - {layer}
    assert not too_far, f"{layer} must not import {sorted(too_far)}"


def test_every_package_has_a_place_in_the_table() -> None:
    names = {p.name for p in ROOT.iterdir() if p.is_dir() and not p.name.startswith("__")}
    assert names <= set(MAY_IMPORT) | ANYTHING


def test_nothing_idle_is_added_and_nothing_is_said_twice() -> None:
    report = subprocess.run(
        [sys.executable, str(ROOT.parents[1] / ".ci/ideas.py"), "--check"], capture_output=True, text=True
    )
    assert report.returncode == 0, report.stdout + report.stderr
