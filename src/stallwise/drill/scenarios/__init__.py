"""Incidents by cause: every module here plants faults of one kind; nothing else has to know of a new one."""

from __future__ import annotations

import pkgutil
from functools import cache
from importlib import import_module

from stallwise.drill.scenarios._planted import PLANTED, Author


@cache
def authors() -> dict[str, tuple[Author, ...]]:
    """All generators by the cause they plant."""
    for module in sorted(m.name for m in pkgutil.iter_modules(__path__) if not m.name.startswith("_")):
        import_module(f"{__name__}.{module}")
    return {cause: tuple(PLANTED[cause]) for cause in sorted(PLANTED)}
