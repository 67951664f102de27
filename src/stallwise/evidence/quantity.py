"""A measurable thing: its name, unit, meaning, the words for it, and which artifact usually shows it."""

from __future__ import annotations

from dataclasses import dataclass, field

from stallwise.evidence.capture import Capture
from stallwise.units import Unit


@dataclass(frozen=True, slots=True)
class Quantity:
    """One line of the catalogue, such as `step.time`. The name stands for all of it."""

    name: str
    unit: Unit = field(compare=False)
    meaning: str = field(compare=False)
    from_: Capture | None = field(default=None, compare=False)
    aliases: tuple[str, ...] = field(default=(), compare=False)  # other words people type for it
    words: tuple[str, ...] = field(default=(), compare=False)  # phrases that name it in keys, columns and sentences
    exact: bool = field(default=False, compare=False)  # of those phrases, a rate is no throughput
    better: str = field(default="", compare=False)  # lower or higher; makes a pair of before and now a complaint
    whole: str = field(default="", compare=False)  # the quantity of which this is a part
    tail: str = field(default="", compare=False)  # the quantity of its 99th percentile
    expected: str = field(default="", compare=False)  # the quantity of what was hoped for
    limit: str = field(default="", compare=False)  # the quantity of the most it can be: "250 W of 700 W"
    symptom: str = field(default="", compare=False)  # what people complain of when it is worse than it was
