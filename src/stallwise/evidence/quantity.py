"""A measurable thing: its name, unit, meaning, and which artifact usually tells it."""

from __future__ import annotations

from dataclasses import dataclass

from stallwise.evidence.capture import Capture
from stallwise.units import Unit


@dataclass(frozen=True, slots=True)
class Quantity:
    """One entry of the fact catalogue, such as `step.time`."""

    name: str
    unit: Unit
    meaning: str
    from_: Capture | None = None
    aliases: tuple[str, ...] = ()  # other words people type for it
