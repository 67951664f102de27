"""Units as people and programs write them, from one table: what is measured, and the factor to SI."""

from __future__ import annotations

import re
import tomllib
from functools import cache
from importlib.resources import files

from stallwise.units import Unit

STEPS_A_SECOND = "step/s"  # the inverse of a time; no quantity carries it
_COUNTS = {
    "count": Unit.COUNT,
    "count of thousands": Unit.COUNT,
    "count of millions": Unit.COUNT,
    "count of billions": Unit.COUNT,
}
_PER = re.compile(r"\s*(?:/|\bper\b|\ba\b)\s*", re.IGNORECASE)


@cache
def _forms() -> dict[str, tuple[tuple[str, float], ...]]:
    """Surface form -> (what, factor), several where a form is ambiguous ("B", "M")."""
    text = (files("stallwise") / "unit_forms.toml").read_text(encoding="utf-8")
    found: dict[str, tuple[tuple[str, float], ...]] = {}
    for what, forms in tomllib.loads(text).items():
        for form, factor in forms.items():
            found[form] = (*found.get(form, ()), (what, float(factor)))
            low = form.lower()
            if low not in forms and (what, float(factor)) not in found.get(low, ()):
                found[low] = (*found.get(low, ()), (what, float(factor)))
    return found


def readings_of(written: str) -> tuple[tuple[Unit | None, float], ...]:
    """What this unit may measure; (None, 1) is steps a second. Empty for a word that is no unit."""
    plain = _PER.sub("/", written.strip().strip("()[]"))
    forms = _forms()
    found = (
        forms.get(plain) or forms.get(plain.lower()) or forms.get(plain.removesuffix("/gpu").removesuffix("/GPU")) or ()
    )
    return tuple(
        (None if what == STEPS_A_SECOND else _COUNTS.get(what) or Unit(what), factor) for what, factor in found
    )


def is_unit(written: str) -> bool:
    """True for a word of the table."""
    return bool(readings_of(written))
