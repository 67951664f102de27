"""Layers that FP8 would damage on long inputs, with the cheapest repair of each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from stallwise.render.blocks import Column, Document, Number, Verdict, number, share, table
from stallwise.render.blocks import document as filled
from stallwise.units import Unit

ERRORS = ("static", "tensor", "row", "block")


def document(short: int, results: Sequence[tuple[int, Sequence[Any]]], top: int, *, deep: bool = False) -> Document:
    """One table a length, the most damaged layer first."""
    harmed = {length: sum(d.harmed for d in damages) for length, damages in results}
    worst = max(harmed, key=lambda length: harmed[length])
    says = f"At {worst} tokens FP8 scales from {short} damage {harmed[worst]} of {len(dict(results)[worst])} layers"
    says = says if harmed[worst] else f"No layer is damaged beyond FP8's own rounding, up to {max(harmed)} tokens"
    head = (Column("layer"), number("amax short", 3), number("long", 3), number("clipped"), *(number(e, 2) for e in ERRORS),
            Column("repair"))  # fmt: skip
    tables = (
        table(
            f"Scales from {short} tokens, used at {length}: {harmed[length]} of {len(damages)} layers beyond FP8's own rounding",
            head,
            (_row(d) for d in damages[:top]),
        )
        for length, damages in results
    )
    return filled(Verdict(says, tone="bad" if harmed[worst] else "good"), *tables, verb="numerics")


def _row(d: Any) -> tuple[Any, ...]:
    amax = (Number(a, Unit.COUNT, f"{a:.3g}") for a in (d.short_amax, d.long_amax))
    return (d.layer, *amax, share(d.saturated_share, 2), *(share(d.errors[e], 1) for e in ERRORS), d.repair)
