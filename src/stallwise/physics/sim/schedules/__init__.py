"""Pipeline schedules, one per file, found by walking this package.

A module defines `NAME`, `TITLE`, `CHUNKS` (virtual stages per device: a number, or None where the user chooses) and
`program(devices, microbatches, chunks, times)`, a pure function. `times` are the pass times of one virtual stage, for
the schedules that adapt to them (`ADAPTS = True`).
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from types import ModuleType

from stallwise.errors import BadRequest


@cache
def all_schedules() -> dict[str, ModuleType]:
    """Every schedule by name."""
    names = sorted(m.name for m in iter_modules(__path__) if not m.name.startswith("_"))
    modules = [import_module(f"{__name__}.{name}") for name in names]
    return {module.NAME: module for module in modules}


def schedule_named(text: str) -> ModuleType:
    """Reads 1f1b, 1F1B-I, zb-h1, ZBH1, v_half, DualPipe..."""
    plain = _plain(text)
    for module in all_schedules().values():
        if plain in {_plain(module.NAME), *(_plain(other) for other in getattr(module, "ALSO", ()))}:
            return module
    raise BadRequest(f"'{text}' is not a schedule", hint="one of " + ", ".join(all_schedules()))


def _plain(text: str) -> str:
    return "".join(c for c in text.lower() if c.isalnum())
