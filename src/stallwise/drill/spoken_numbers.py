"""Numbers in speech: found with their units, compared within a factor."""

from __future__ import annotations

import re
from collections.abc import Iterable

FACTOR = 1.25  # a back-of-envelope figure is right within a quarter
_PREFIX = {"k": 1e3, "m": 1e6, "g": 1e9, "t": 1e12, "p": 1e15, "b": 1e9}
_SPOKEN = re.compile(
    r"(?<![\w.])(\d[\d,_]*(?:\.\d+)?(?:e[-+]?\d+)?)\s*(%|ms|us|µs|ns|min\b|s\b|h\b|x\b|[kmgtpKMGTPB](?=i?b|flop|bit|\b|tok))?",
    re.IGNORECASE,
)
_SECONDS = {"ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9, "s": 1.0, "min": 60.0, "h": 3600.0}


def numbers_in(text: str) -> list[float]:
    """Values in SI; single digits without a unit are counting words, not arithmetic."""
    found = []
    for match in _SPOKEN.finditer(text):
        digits, unit = match[1].replace(",", "").replace("_", ""), (match[2] or "").lower()
        try:
            value = float(digits)
        except ValueError:
            continue
        if not unit and len(digits) < 2:
            continue
        scale = 0.01 if unit == "%" else _SECONDS.get(unit) or _PREFIX.get(unit, 1.0)
        found.append(value * scale)
    return found


def near(value: float, known: Iterable[float]) -> float | None:
    """The known number that this one is, within the factor."""
    for other in known:
        if other and value and 1 / FACTOR <= value / other <= FACTOR:
            return other
    return None
