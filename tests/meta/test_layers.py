"""Data flows one way: who may import whom, checked on the source itself."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2] / "src" / "stallwise"

EVERYWHERE = {"late", "terminal"}  # numpy at its first use; how wide the terminal is
BASICS = {"tables", "units", "errors"}
# A room may import itself and these. Rooms with floors have one row a floor: the longest name that fits a module counts.
MAY_IMPORT = {
    "late": set(),
    "terminal": set(),
    "errors": set(),
    "tables": set(),
    "units": {"tables", "errors"},
    "progress": {"units"},
    "evidence": BASICS,
    "physics.specs": BASICS,
    "physics.costs": {"physics.specs", *BASICS},
    "physics.sim": {"evidence", "physics.costs", "physics.specs", *BASICS},
    "physics.probe": {"physics.specs", *BASICS},
    "readers": {"evidence", "physics.specs", *BASICS},
    "readers.text": {"evidence", "physics.specs", *BASICS},
    "doctor.findings": {"evidence", *BASICS},
    # A measure replays the trace it looks at: `sim.replay` is physics over columns and knows no names.
    "doctor.measures": {"evidence", "readers.text", "physics.sim", "physics.costs", "physics.specs", *BASICS},
    "causes": {"doctor.findings", "evidence", *BASICS},
    # Of `recorder` the doctor takes Student's quantile alone: a trend is judged as trials are.
    "doctor": {
        "recorder",
        "experiment",
        "causes",
        "readers",
        "evidence",
        "physics",
        "planner",
        "progress",
        *BASICS,
    },
    "planner": {"evidence", "physics", "progress", *BASICS},
    "recorder": {"experiment"},  # standard library only: both run inside the user's job
    "experiment": {"recorder"},
    "render": {"doctor.findings", "evidence", "planner", "physics.specs", "physics.costs", *BASICS},
    "drill": {"doctor", "evidence", "physics", "planner", "readers", *BASICS},
    "lint": {"evidence", *BASICS},
    "physics": set(),
}
ANYTHING = {"surfaces", "__main__", "__init__"}
MOST_ROOMS = 12


def imports_of(path: Path) -> set[str]:
    """The modules of ours that a file imports, without the package's own name."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        found |= {name.partition(".")[2] for name in names if name.startswith("stallwise.")}
    return found


def row_of(module: str) -> str:
    """The row of the table that speaks for a module."""
    parts = module.split(".")
    names = [".".join(parts[:n]) for n in range(len(parts), 0, -1)]
    return next((name for name in names if name in MAY_IMPORT), parts[0])


def is_seen(module: str, allowed: set[str]) -> bool:
    """A floor is seen by whoever may see it or its whole room."""
    row = row_of(module)
    return row in allowed or row.partition(".")[0] in allowed


FILES = sorted(ROOT.rglob("*.py"))


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(ROOT)))
def test_a_file_imports_only_what_its_layer_may_see(path: Path) -> None:
    module = ".".join(path.relative_to(ROOT).with_suffix("").parts)
    row = row_of(module)
    if row in ANYTHING:
        return
    allowed = MAY_IMPORT[row] | EVERYWHERE | {row}
    too_far = {name for name in imports_of(path) if not is_seen(name, allowed)} - {"__version__"}
    assert not too_far, f"{row} must not import {sorted(too_far)}"


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(ROOT)))
def test_no_file_imports_a_private_module_of_another_room(path: Path) -> None:
    room = path.relative_to(ROOT).parts[0]
    private = [
        name
        for name in imports_of(path)
        if name.partition(".")[0] != room
        and any(p.startswith("_") and not p.startswith("__") for p in name.split(".")[:-1])
    ]
    assert not private, f"{room} must not import {private}"


def test_every_room_has_a_place_in_the_table() -> None:
    rooms = {p.name for p in ROOT.iterdir() if p.is_dir() and not p.name.startswith("__")}
    assert rooms <= {name.partition(".")[0] for name in MAY_IMPORT} | ANYTHING
    assert len(rooms) <= MOST_ROOMS


def test_nothing_idle_is_added_and_nothing_is_said_twice() -> None:
    report = subprocess.run(
        [sys.executable, str(ROOT.parents[1] / ".ci/ideas.py"), "--check"], capture_output=True, text=True
    )
    assert report.returncode == 0, report.stdout + report.stderr
