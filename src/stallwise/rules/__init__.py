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
            if module.name.startswith("_"):
                continue  # parts that several causes of a family share
            loaded = import_module(f"{package.__name__}.{module.name}")
            value = getattr(loaded, module.name)
            assert isinstance(value, Rule), f"{loaded.__name__} must define the rule {module.name}"
            explains = getattr(loaded, "EXPLAINS", {})
            clues, advise = getattr(loaded, "CLUES", ()), getattr(loaded, "advise", None)
            found.append(replace(value, explains=explains, clues=clues, advise=advise))
    return tuple(found)
