"""The part of a card that is graded exactly: one line, several lines, an order, or a number with its unit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from stallwise.drill.artifacts.rng import Rng
from stallwise.drill.lines_chosen import lines_meant, one_line
from stallwise.drill.quantity import typed
from stallwise.errors import BadRequest
from stallwise.units import Unit, example, show

KINDS = ("choice", "several", "order", "number")
HOW = {
    "choice": "one letter or number",
    "several": "all that are right, like 1 3",
    "order": "all of them in order, like 3 1 2",
}


@dataclass(frozen=True, slots=True)
class Check:
    """What is asked and what is right; the order of the lines on the screen comes from a seed."""

    kind: str
    ask: str
    right: tuple[str, ...] = ()
    wrong: tuple[str, ...] = ()
    value: float = 0.0
    unit: Unit = Unit.COUNT
    within: float = 1.0

    def lines(self, seed: int) -> tuple[str, ...]:
        """What to choose from, shuffled."""
        every = [*self.right, *self.wrong]
        return tuple(Rng(seed).some(every, len(every)))

    def question(self, seed: int) -> str:
        """As it is put to the learner."""
        if self.kind == "number":
            return f"{self.ask} (with its unit, like {example(self.unit)})"
        listed = "\n".join(f"  {'abcdefgh'[n]}. {line}" for n, line in enumerate(self.lines(seed)))
        return f"{self.ask} ({HOW[self.kind]})\n{listed}"

    def is_right(self, text: str, seed: int) -> bool:
        """Exactly right or not; what cannot be understood raises and is asked again."""
        if not text.strip():
            raise BadRequest("an answer, please", hint="or: skip")
        if self.kind == "number":
            value = typed(text, self.unit)
            return value > 0 and 1 / self.within - 1e-9 <= value / self.value <= self.within + 1e-9
        lines = self.lines(seed)
        if self.kind == "choice":
            return lines[one_line(text, lines)] in self.right
        meant = tuple(lines[n] for n in _several(text, lines))
        if self.kind == "several":
            return set(meant) == set(self.right)
        if len(meant) != len(self.right):
            raise BadRequest(f"all {len(self.right)} of them, please", hint="in order, like 3 1 2")
        return meant == self.right

    @property
    def answer(self) -> str:
        """What is right, in words."""
        if self.kind == "number":
            return show(self.value, self.unit)
        return ("; then " if self.kind == "order" else "; ").join(self.right)


def _several(text: str, lines: tuple[str, ...]) -> tuple[int, ...]:
    plain = text.strip().lower().rstrip(".")
    if plain in ("all", "all of them", "everything"):
        return tuple(range(len(lines)))
    if plain in ("none", "none of them", "nothing"):
        return ()
    return lines_meant(text, lines)


def check_of(row: Mapping[str, Any]) -> Check:
    """From a card's table."""
    return Check(
        row["kind"],
        row["ask"],
        tuple(row.get("right", ())),
        tuple(row.get("wrong", ())),
        float(row.get("value", 0.0)),
        Unit(row.get("unit", "count")),
        float(row.get("within", 1.0)),
    )
