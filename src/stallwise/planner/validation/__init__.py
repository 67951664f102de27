"""Predicted against published: one kind of table per file, found by walking this package.

A module defines `KIND` and `validate(rows, calibrate)`: rows as read from the CSV, in; one `Scored` per row, out. It
never looks at a measured column to predict that row; with `calibrate` it may use the first N rows of each source.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from types import ModuleType

from stallwise.errors import BadRequest


@cache
def all_kinds() -> dict[str, ModuleType]:
    """Every kind of table by name."""
    names = sorted(m.name for m in iter_modules(__path__) if not m.name.startswith("_"))
    modules = [import_module(f"{__name__}.{name}") for name in names]
    return {module.KIND: module for module in modules}


def kind_named(text: str) -> ModuleType:
    """The module for a kind, or the known kinds in the error."""
    found = all_kinds().get(text.strip().lower())
    if found is None:
        raise BadRequest(f"no kind of table is called '{text}'", hint="one of " + ", ".join(all_kinds()))
    return found
