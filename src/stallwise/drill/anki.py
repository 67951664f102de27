"""The deck as a text file that Anki imports: front, back, tags, separated by tabs."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from stallwise.drill.deck import Card


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
