"""A worked formula: the sentence, the equation, the numbers, the pitfall, the source."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stallwise.render.blocks import Code, Document, Facts, Note, Number, Verdict, Words, joined, steps
from stallwise.render.blocks import document as filled
from stallwise.units import Unit, show

LARGE = 1e6  # beyond, four digits say more


def document(answer: dict[str, Any], units: Mapping[str, Unit], *, deep: bool = False) -> Document:
    """One formula with the user's numbers."""
    equation = "\n".join(line.strip() for line in answer["equation"].splitlines())
    given = joined((joined((k, _shown(v, units.get(k))), " ") for k, v in answer["inputs"].items()), ", ")
    return filled(
        Verdict(answer["title"]),
        Code(equation),
        steps("", [given], label="with"),
        Facts(tuple((k, _shown(v, units.get(k))) for k, v in answer["results"].items()), label="gives"),
        Note(" ".join(answer["folk"].split()), title="Beware", label="beware", warns=True),
        steps("", [answer["source"]], label="from"),
        verb="plan formula",
        subject=answer["name"],
    )


def _shown(value: Any, unit: Unit | None) -> Words:
    if isinstance(value, str):
        return value
    if unit is None or unit is Unit.COUNT:
        return Number(value, Unit.COUNT, f"{value:.4g}" if abs(value) >= LARGE else f"{value:,.6g}")
    return Number(value, unit, show(value, unit))
