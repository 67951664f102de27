"""Compiles which measures there are and what each looks at (make index)."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import Any

from stallwise.evidence.compiled import Rows
from stallwise.evidence.evidence import Evidence
from stallwise.evidence.inputs import Inputs
from stallwise.evidence.source_reads import reads

FOLDER = Path(__file__).parent
PACKAGE = __name__.rpartition(".")[0]


def build() -> tuple[Rows, set[Path]]:
    """Rows by name, in the order in which the measures run, and the files that they were read off."""
    files: set[Path] = set()
    names = [m.name for m in iter_modules([str(FOLDER)]) if not m.name.startswith("_")]
    modules = {name: import_module(f"{PACKAGE}.{name}") for name in names}
    ordered = sorted(names, key=lambda name: (getattr(modules[name], "ORDER", 0), name))
    return {name: _row(name, modules[name], files) for name in ordered}, files


def _row(name: str, module: Any, files: set[Path]) -> dict[str, Any]:
    row: dict[str, Any] = {"of_timeline": hasattr(module, "from_timeline")}
    if hasattr(module, "from_evidence"):
        inputs, more = reads(f"{PACKAGE}.{name}", "from_evidence")
        files |= more
        gives = any(True for _ in module.from_evidence(Evidence()))
        row["reads"] = Inputs(inputs.quantities, inputs.lists, inputs.labels, inputs.always or gives).row()
    return row
