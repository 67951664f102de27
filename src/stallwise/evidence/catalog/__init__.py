"""Every quantity that a fact may carry, one file per family. Importing a quantity by name keeps typos out of rules."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from pkgutil import iter_modules

from stallwise.evidence.quantity import Quantity


@cache
def quantities() -> dict[str, Quantity]:
    """All quantities by name, found by walking this package."""
    found: dict[str, Quantity] = {}
    for module in iter_modules(__path__):
        for value in vars(import_module(f"{__name__}.{module.name}")).values():
            if isinstance(value, Quantity):
                twin = found.setdefault(value.name, value)
                assert twin == value, f"{value.name} is declared twice"
    return found
