"""Answers a question asked in words from the pages there are: the best page, what completes it, and where to go on."""

from __future__ import annotations

from textwrap import fill
from typing import Any

from stallwise.doctor.catalogue import by_cause
from stallwise.drill.deck import Card, all_cards
from stallwise.drill.explain import concepts
from stallwise.drill.looking_up import Hit, Place, look_up
from stallwise.physics.costs.formulas import worked

BESIDE = 0.35  # of the best page's score: a formula or card that speaks of the question as well is shown with it
WIDTH = 110


def answered(question: str) -> dict[str, Any] | None:
    """The page for a question, `text` as it is printed; nothing where no page speaks of it."""
    hits = look_up(question)
    if not hits:
        return None
    shown = _completed(hits)
    blocks = [_place_text(place) for place in shown]
    seen = {(p.kind, p.name) for p in shown}
    more = [h.place for h in hits if (h.place.kind, h.place.name) not in seen and h.score >= BESIDE * hits[0].score][:3]
    if more:
        blocks.append("see also  " + "; ".join(_command(p) for p in more))
    return {
        "question": question,
        "pages": [{"kind": p.kind, "name": p.name} for p in shown],
        "see_also": [{"kind": p.kind, "name": p.name} for p in more],
        "text": "\n\n".join(blocks),
    }


def _completed(hits: list[Hit]) -> list[Place]:
    """The best page, and what belongs to it: a concept's best card, a card's concept, the formula that works it out."""
    best = hits[0].place
    near = [h.place for h in hits if h.score >= BESIDE * hits[0].score]
    shown = [best]
    if best.kind == "concept":
        shown += [p for p in near if p.kind == "card" and p.name in concepts()[best.name].cards][:1] or [
            p for p in near if p.kind == "card"
        ][:1]
    elif best.kind in ("card", "formula"):
        shown += [p for p in near if p.kind == "concept"][:1] or _concepts_of(best)[:1]
    if best.kind == "formula":
        shown += [p for p in near if p.kind == "card"][:1]
    else:
        shown += [p for p in near if p.kind == "formula"][:1]
    return shown


def _concepts_of(place: Place) -> list[Place]:
    return [Place("concept", c.name) for c in concepts().values() if place.kind == "card" and place.name in c.cards]


def _place_text(place: Place) -> str:
    if place.kind == "concept":
        return concepts()[place.name].page()
    if place.kind == "card":
        return _card(next(c for c in all_cards() if c.id == place.name))
    if place.kind == "formula":
        return worked(place.name)
    return f"{place.name}\n\n{by_cause()[place.name].page.strip()}"


def _card(card: Card) -> str:
    loose = f"\n{fill('beware    ' + card.corrects, WIDTH, subsequent_indent=' ' * 10)}" if card.corrects else ""
    return f"{fill(card.ask, WIDTH)}\n\n{fill(card.answer, WIDTH)}{loose}"


def _command(place: Place) -> str:
    if place.kind == "formula":
        return f"stallwise plan formula {place.name}"
    return f"stallwise explain {place.name}"
