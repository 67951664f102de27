"""No function is above a complexity of 20, and those above 15 stand in a list that only shrinks (ruff C901)."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LISTED_ABOVE, MOST = 15, 20
LIST = Path(__file__).with_name("complex_functions.tsv")


def complexities(folder: Path, above: int) -> dict[str, int]:
    """The functions of a folder that ruff finds above a complexity; of two with one name the worse."""
    limit = f"lint.mccabe.max-complexity={above}"
    command = [sys.executable, "-m", "ruff", "check", "--isolated", "--no-cache", "--select", "C901", "--config", limit]
    ran = subprocess.run([*command, "--output-format", "json", str(folder)], capture_output=True, text=True)
    if "No module named ruff" in ran.stderr:
        pytest.skip("ruff is not installed")
    found: dict[str, int] = {}
    for row in json.loads(ran.stdout):
        match = re.match(r"`(\w+)` is too complex \((\d+) >", row["message"])
        assert match, row["message"]
        found[match[1]] = max(found.get(match[1], 0), int(match[2]))
    return found


def listed() -> dict[str, int]:
    rows = (line.split("\t") for line in LIST.read_text(encoding="utf-8").splitlines() if not line.startswith("#"))
    return {name: int(complexity) for name, complexity in rows}


def test_functions_are_simple_or_listed() -> None:
    found, allowed = complexities(ROOT / "src", LISTED_ABOVE), listed()
    grown = {name: value for name, value in found.items() if value > allowed.get(name, LISTED_ABOVE)}
    assert not grown, f"above {LISTED_ABOVE}, or above what {LIST.name} allows: split them"
    assert max(allowed.values(), default=0) <= MOST
    simpler = {name: value for name, value in allowed.items() if found.get(name, 0) < value}
    assert not simpler, f"simpler than {LIST.name} says: lower or remove their lines"


def test_a_branchy_function_is_seen(tmp_path: Path) -> None:
    lines = [f"    if x == {n}:\n        x += {n}" for n in range(16)]
    (tmp_path / "branchy.py").write_text("def branchy(x):\n" + "\n".join(lines) + "\n    return x\n")
    assert complexities(tmp_path, LISTED_ABOVE) == {"branchy": 17}
