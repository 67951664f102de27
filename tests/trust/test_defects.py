"""Every known defect of the first release has tests of its own, and they are there (defects.toml)."""

from __future__ import annotations

import ast
import tomllib
from pathlib import Path

REPO = Path(__file__).parents[2]
DEFECTS = tomllib.loads((Path(__file__).parent / "defects.toml").read_text(encoding="utf-8"))["defect"]
NUMBERED = 26  # of the list that the first release was attacked with


def test_every_defect_has_its_test() -> None:
    assert {str(n) for n in range(1, NUMBERED + 1)} <= {d["id"] for d in DEFECTS}
    missing = []
    for defect in DEFECTS:
        assert defect["tests"] and defect["first_release"], defect["id"]
        for place in defect["tests"]:
            file, _, name = place.partition("::")
            tree = ast.parse((REPO / file).read_text(encoding="utf-8"))
            if name not in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}:
                missing.append((defect["id"], place))
    assert missing == []
