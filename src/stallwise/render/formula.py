"""A worked formula for a terminal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stallwise.units import Unit, show


def listing(titles: dict[str, str]) -> str:
    """Names and what they say."""
    width = max(map(len, titles))
    return "\n".join(f"{name:{width}}  {title}" for name, title in titles.items())


def to_text(answer: dict[str, Any], units: Mapping[str, Unit]) -> str:
    """The sentence, the equation, the numbers, the pitfall, the source."""
    lines = [answer["title"], "", *(f"    {line.strip()}" for line in answer["equation"].splitlines()), ""]
    lines.append("with     " + ", ".join(f"{k} {_shown(v, units.get(k))}" for k, v in answer["inputs"].items()))
    lines += [f"gives    {key}: {_shown(value, units.get(key))}" for key, value in answer["results"].items()]
    if answer["folk"]:
        lines.append("beware   " + " ".join(answer["folk"].split()))
    lines.append(f"source   {answer['source']}")
    return "\n".join(lines)


def _shown(value: Any, unit: Unit | None) -> str:
    if isinstance(value, str):
        return value
    if unit is None or unit is Unit.COUNT:
        return f"{value:.4g}" if abs(value) >= 1e6 else f"{value:,.6g}"
    return show(value, unit)
