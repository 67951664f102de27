"""Every cause the doctor knows, one file each, in a folder per family."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from importlib import import_module
from pkgutil import iter_modules

from stallwise.findings.rule import Rule


@cache
def all_rules() -> tuple[Rule, ...]:
    """Every rule of the product, in order of family and name; found by walking, never registered."""
    found: list[Rule] = []
    for family in iter_modules(__path__):
        package = import_module(f"{__name__}.{family.name}")
        for module in iter_modules(package.__path__):
            loaded = import_module(f"{package.__name__}.{module.name}")
            value = getattr(loaded, module.name)
            assert isinstance(value, Rule), f"{loaded.__name__} must define the rule {module.name}"
            explains = getattr(loaded, "EXPLAINS", {})
            found.append(replace(value, explains=explains, clues=getattr(loaded, "CLUES", ())))
    return tuple(found)
