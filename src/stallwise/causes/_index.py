"""Compiles what is known of every cause before its module is loaded (make index)."""

from __future__ import annotations

import tomllib
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from types import ModuleType
from typing import Any

from stallwise.doctor.findings.rule import Rule
from stallwise.evidence.compiled import Rows
from stallwise.evidence.evidence import Evidence
from stallwise.evidence.inputs import Inputs
from stallwise.evidence.source_reads import reads

FOLDER = Path(__file__).parent
PACKAGE = __name__.rpartition(".")[0]
HEALTH = "health"  # the family of proofs: what shows that no cause is there
# Of a cause's table; the rest is read where it is asked for.
AT_START = ("owner", "seen", "explains", "owns", "threshold", "preview")


def build() -> tuple[Rows, set[Path]]:
    """Rows by cause and by proof, and the files that they were read off."""
    files: set[Path] = set()
    causes = {name.replace("_", "-"): _cause(family, name, files) for family, name in _modules() if family != HEALTH}
    proofs = {name: _reads(family, name, name, files).row() for family, name in _modules() if family == HEALTH}
    return {"causes": causes, "proofs": proofs}, files


def _modules() -> list[tuple[str, str]]:
    """Family and name of every cause and proof; found by walking, never registered."""
    families = [m.name for m in iter_modules([str(FOLDER)]) if m.ispkg]
    inside = [(f, m.name) for f in families for m in iter_modules([str(FOLDER / f)])]
    return sorted((f, name) for f, name in inside if not name.startswith("_"))


def _cause(family: str, name: str, files: set[Path]) -> dict[str, Any]:
    module = import_module(f"{PACKAGE}.{family}.{name}")
    rule = _rule(module, name)
    table = tomllib.loads((FOLDER / family / f"{name}.toml").read_text(encoding="utf-8"))
    row = {"family": family, **_judged(rule, family, name, files)}
    row["clues"] = [[[q.name for q in c.reads], c.strength, c.says, c.says_not] for c in getattr(module, "CLUES", ())]
    row["advise"] = hasattr(module, "advise")
    if hasattr(module, "in_trace"):
        row["in_trace"] = _judged(_rule(module, "in_trace"), family, name, files, "in_trace")
    return row | {key: table[key] for key in AT_START if key in table}


def _judged(rule: Rule, family: str, name: str, files: set[Path], function: str = "") -> dict[str, Any]:
    looked_at = _reads(family, name, function or name, files)
    instead = {"instead": [q.name for q in rule.instead]} if rule.instead else {}
    return {"needs": [q.name for q in rule.needs], "per": rule.per, "reads": looked_at.row(), **instead}


def _rule(module: ModuleType, name: str) -> Rule:
    rule = getattr(module, name, None)
    assert isinstance(rule, Rule), f"{module.__name__} must define the rule {name}"
    return rule


def _reads(family: str, name: str, function: str, files: set[Path]) -> Inputs:
    """As its source says; what speaks though nothing was read is always run."""
    module = f"{PACKAGE}.{family}.{name}"
    inputs, more = reads(module, function, Rule.__module__)
    files |= more
    judge = getattr(import_module(module), function)
    if isinstance(judge, Rule):
        if judge.needs:  # asked only where these are there, and they are among what it looks at
            return inputs
        judge = judge.judge
    return Inputs(inputs.quantities, inputs.lists, inputs.labels, inputs.always or bool(judge(Evidence())))
