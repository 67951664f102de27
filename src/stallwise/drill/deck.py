"""Question cards by topic, each with an exact check and the ideas that an answer in words holds; and the deck as Anki imports it."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from html import escape
from importlib.resources import files

from stallwise.drill.check import Check, check_of

LEVELS = ("easy", "medium", "hard", "scenario")


@dataclass(frozen=True, slots=True)
class Card:
    """One question with its answer. `check` is graded; `must` holds words of the ideas, which are read from the prose."""

    id: str
    topic: str
    level: str
    ask: str
    answer: str
    check: Check
    must: tuple[tuple[str, ...], ...]
    covers: tuple[str, ...] = ()
    corrects: str = ""  # where a common answer is loose or wrong, what is right


@cache
def all_cards() -> tuple[Card, ...]:
    """Every written card, by topic and in the order of its file."""
    folder = files("stallwise.drill") / "cards"
    found: list[Card] = []
    for file in sorted(folder.iterdir(), key=lambda f: f.name):
        if file.name.endswith(".toml"):
            document = tomllib.loads(file.read_text(encoding="utf-8"))
            found += [
                Card(
                    id=entry["id"],
                    topic=document["topic"],
                    level=entry["level"],
                    ask=entry["ask"],
                    answer=entry["answer"],
                    check=check_of(entry["check"]),
                    must=tuple(tuple(idea) for idea in entry["must"]),
                    covers=tuple(entry["covers"]),
                    corrects=entry.get("corrects", ""),
                )
                for entry in document["card"]
            ]
    return tuple(found)


def asking(number: int) -> tuple[Card, ...]:
    """Cards on one question about large systems, by its number."""
    return tuple(c for c in all_cards() if f"llm:{number}" in c.covers)


def topics() -> tuple[str, ...]:
    """The topics of the deck."""
    return tuple(sorted({c.topic for c in all_cards()}))


def to_anki(cards: Iterable[Card]) -> str:
    """One note a line, with the headers that Anki reads."""
    head = ["#separator:tab", "#html:true", "#notetype:Basic", "#deck:stallwise", "#tags column:3"]
    rows = [
        "\t".join(
            (
                escape(card.ask),
                escape(card.answer) + (f"<br><br><i>{escape(card.corrects)}</i>" if card.corrects else ""),
                f"stallwise::{card.topic} level::{card.level}",
            )
        )
        for card in cards
    ]
    return "\n".join([*head, *rows]) + "\n"
