"""Pictures of a report, one per file: each module has `draw(diagnosis)`, which returns a Figure or None when there is
nothing to show, and `PLACE`, which orders them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from types import ModuleType

from markupsafe import Markup

from stallwise.doctor.findings.diagnosis import Diagnosis


@dataclass(frozen=True, slots=True)
class Figure:
    """One picture with its words."""

    slug: str
    title: str
    svg: Markup
    caption: str
    source: str = ""
    legend: tuple[tuple[str, str], ...] = ()  # (class, word)
    rows: tuple[tuple[str, ...], ...] = ()  # the same as a table, for those who cannot see the picture; head first


@cache
def _modules() -> tuple[ModuleType, ...]:
    found = [import_module(f"{__name__}.{m.name}") for m in iter_modules(__path__) if not m.name.startswith("_")]
    return tuple(sorted(found, key=lambda m: m.PLACE))


def figures(diagnosis: Diagnosis) -> list[Figure]:
    """All pictures that this evidence allows."""
    found: list[Figure] = []
    for module in _modules():
        drawn = module.draw(diagnosis)
        found += drawn if isinstance(drawn, list) else [drawn] if drawn else []
    return found
