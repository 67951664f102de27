"""Pictures of a report, one per file: each module has `draw(diagnosis)`, which returns a Picture or None when there is
nothing to show, `PLACE`, which orders them, and `TAB`, unless it is the first."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from types import ModuleType

from stallwise.doctor.findings.diagnosis import Diagnosis
from stallwise.render.blocks import Picture, Tab


@cache
def _modules() -> tuple[ModuleType, ...]:
    found = [import_module(f"{__name__}.{m.name}") for m in iter_modules(__path__) if not m.name.startswith("_")]
    return tuple(sorted(found, key=lambda m: m.PLACE))


def figures(diagnosis: Diagnosis) -> list[Picture]:
    """All pictures that this evidence allows."""
    found: list[Picture] = []
    for module in _modules():
        drawn = module.draw(diagnosis)
        drawn = drawn if isinstance(drawn, list) else [drawn] if drawn else []
        found += [replace(picture, tab=getattr(module, "TAB", Tab.WHY)) for picture in drawn]
    return found
