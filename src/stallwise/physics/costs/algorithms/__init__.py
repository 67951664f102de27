"""Ways to run a collective, one per file, found by walking this package.

A module defines `NAME`, `AUTOMATIC` (whether NCCL picks it by itself) and `cost(op, size_bytes, group)`, which returns
the parts of its time or None where it cannot run that operation on that group.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from types import ModuleType


@cache
def all_algorithms() -> tuple[ModuleType, ...]:
    """Every algorithm, by name."""
    names = sorted(m.name for m in iter_modules(__path__) if not m.name.startswith("_"))
    return tuple(import_module(f"{__name__}.{name}") for name in names)
