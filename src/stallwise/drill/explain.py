"""Concepts as pages: what it is, the formula with a number worked out by the cost model, where it shows, what belongs to it."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from stallwise.doctor.catalogue import by_cause
from stallwise.drill.calculator import calculate
from stallwise.drill.deck import all_cards
from stallwise.errors import BadRequest
from stallwise.physics.costs.collectives import collective_time, compare_algorithms
from stallwise.physics.costs.formulas import all_formulas
from stallwise.physics.costs.occupancy import occupancy
from stallwise.physics.costs.topology import DGX_A100, DGX_B200, DGX_H100
from stallwise.physics.specs.hardware import gpu
from stallwise.units import Unit, show

FEWEST_WORDS = 2  # a single word is a name, found or not; more of them may be a question
FABRICS = {"a100": DGX_A100, "h100": DGX_H100, "b200": DGX_B200}


@dataclass(frozen=True, slots=True)
class Concept:
    """One page (concepts/NAME.toml)."""

    name: str
    title: str
    also: list[str]
    definition: str
    equation: str
    worked: Mapping[str, Any]
    shows: str
    causes: list[str]
    cards: list[str]

    @property
    def number(self) -> tuple[float, Unit]:
        """The worked number, by the cost model."""
        return _number(self.worked)

    @property
    def worked_line(self) -> str:
        """The worked number in words."""
        value, unit = self.number
        return f"{self.worked['of']}: {show(value, unit)}"

    def page(self) -> str:
        """As it is printed."""
        lines = [self.title, "", self.definition, "", f"formula   {self.equation}", f"worked    {self.worked_line}"]
        lines += [f"shows in  {self.shows}"]
        if self.causes:
            lines += [f"causes    {', '.join(self.causes)}   (stallwise explain CAUSE)"]
        if self.cards:
            lines += [f"cards     {', '.join(self.cards)}   (stallwise drill cards)"]
        return "\n".join(lines)


@cache
def concepts() -> dict[str, Concept]:
    """All of them by name."""
    folder = files("stallwise.drill") / "concepts"
    found = {}
    for file in sorted(folder.iterdir(), key=lambda f: f.name):
        if file.name.endswith(".toml"):
            name = file.name.removesuffix(".toml")
            found[name] = Concept(name, **tomllib.loads(file.read_text(encoding="utf-8")))
    return found


def find_concept(text: str) -> Concept | None:
    """By its name, its title or another name people use."""
    wanted = _plain(text)
    for concept in concepts().values():
        if wanted in {_plain(n) for n in (concept.name, concept.title, *concept.also)}:
            return concept
    return None


def names() -> tuple[str, ...]:
    """Every name that finds a page, for near misses."""
    return tuple(n for c in concepts().values() for n in (c.name, *c.also))


def _plain(text: str) -> str:
    return "".join(x for x in text.lower() if x.isalnum())


def _number(worked: Mapping[str, Any]) -> tuple[float, Unit]:
    if "formula" in worked:
        module = all_formulas()[worked["formula"]]
        value = module.evaluate(**worked.get("inputs", {}))[worked["result"]]
        return float(value), module.UNITS.get(worked["result"], Unit.COUNT)
    if "collective" in worked:
        asked = (worked["collective"], worked["size_bytes"], worked["ranks"], FABRICS[worked["fabric"]])
        wanted = worked.get("algorithm", "")
        if not wanted:
            return collective_time(*asked).seconds, Unit.SECOND
        return next(e for e in compare_algorithms(*asked) if wanted in e.algorithm).seconds, Unit.SECOND
    if "occupancy" in worked:
        card = gpu(worked["occupancy"])
        sizes = {k: worked[k] for k in ("registers", "shared_bytes", "block_threads")}
        return occupancy(card.sm, float(card.compute_capability), **sizes).share, Unit.SHARE
    return calculate(worked["calc"]), Unit(worked["unit"])


def explained(text: str) -> dict[str, Any]:
    """The page of a cause, a concept or a question as plain containers, `text` as it is printed; near names where none is."""
    from difflib import get_close_matches

    from stallwise.drill.answering import answered
    from stallwise.drill.looking_up import page_about

    by_name = by_cause()
    rule, concept = by_name.get(text.strip().lower().replace("_", "-").replace(" ", "-")), find_concept(text)
    if rule is not None:
        belongs = [c.name for c in concepts().values() if rule.cause in c.causes]
        page_text = f"{rule.cause}\n\n{rule.page}" + (f"\n\nconcepts  {', '.join(belongs)}" if belongs else "")
        return {
            "cause": rule.cause, "family": rule.family, "page": rule.page, "reads": [q.name for q in rule.needs],
            "concepts": belongs, "text": page_text,
        }  # fmt: skip
    if concept is not None:
        value, unit = concept.number
        return {
            "concept": concept.name, "title": concept.title, "also": concept.also, "definition": concept.definition,
            "equation": concept.equation, "worked": {"of": concept.worked["of"], "value": value, "unit": unit.value},
            "shows": concept.shows, "causes": concept.causes, "cards": concept.cards, "text": concept.page(),
        }  # fmt: skip
    if len(text.split()) >= FEWEST_WORDS or text.lower() in {c.id for c in all_cards()}:
        found = answered(text)
        if found is not None:
            return found
    elif (place := page_about(text)) is not None:
        return explained(place.name)
    close = get_close_matches(text.lower().replace("_", "-"), [*by_name, *names()], n=3, cutoff=0.4)
    hint = (
        f"did you mean {' or '.join(close)}?"
        if close
        else "stallwise causes lists the causes, stallwise explain the concepts"
    )
    raise BadRequest(f"nothing is called '{text[:60]}'", hint=hint)
