"""Ways to use one card, beside each other: whole, in slices, or shared."""

from __future__ import annotations

from typing import Any

from stallwise.physics.specs.deployment import Deployment
from stallwise.planner.card_sharing import ISOLATION, WAYS, Way, cards_for
from stallwise.planner.serving import Question
from stallwise.render.blocks import (
    Column,
    Document,
    Facts,
    Table,
    Verdict,
    Words,
    count,
    dollar,
    number,
    rate,
    seconds,
    size,
    table,
)
from stallwise.render.blocks import document as filled
from stallwise.render.documents.sizing import target
from stallwise.units import Unit, show


def document(found: list[Way], deployment: Deployment, q: Question, *, deep: bool = False) -> Document:
    """The ways that hold the target, why the others do not, and how isolated each is."""
    ways = [by for by in WAYS if any(w.by == by for w in found)]
    return filled(
        _verdict(found, deployment, q),
        _table([w for w in found if w.limit is not None], deployment, q),
        Facts(tuple((w.name, w.why_not) for w in found if w.limit is None), title="Do not hold it"),
        Facts(tuple((by, ISOLATION[by]) for by in ways), title="Isolation"),
        verb="plan share",
        subject=f"{q.model.name} {deployment.label} on one {deployment.gpu.title}",
    )


def _verdict(found: list[Way], deployment: Deployment, q: Question) -> Verdict:
    asked = f"{target(q)}, on one {deployment.gpu.title}."
    holding = [w for w in found if w.limit is not None]
    if not holding:
        return Verdict("Nothing holds the target on this card.", asked, "", "bad")
    best = max(holding, key=lambda w: w.rate_per_s)
    speed = show(best.rate_per_s * q.osl, Unit.TOKEN_PER_S)
    return Verdict(
        f"{q.model.name} {deployment.label}: most within the target is {best.name}, {speed} of the card", asked
    )


def _table(ways: list[Way], d: Deployment, q: Question) -> Table:
    head = (
        Column("way"), number("memory", 5), number("bandwidth", 6), number("token alone", 3), number("all busy"),
        number("TTFT", 2), number("tokens/s each", 4), number("of the card"), number("$/M tokens", 1), number("cards"),
    )  # fmt: skip
    return table("Within the target", head, (_row(w, d, q) for w in ways))


def _row(way: Way, d: Deployment, q: Question) -> tuple[Words, ...]:
    assert way.limit is not None and way.alone is not None and way.busy is not None
    return (
        way.name, size(way.memory_bytes), rate(way.bandwidth_byte_per_s), seconds(way.alone.tpot_s),
        seconds(way.busy.tpot_s), seconds(way.busy.ttft_s), count(way.limit.rate_per_s * q.osl),
        count(way.rate_per_s * q.osl), dollar(dollar_per_million_tokens(way, d, q)), str(cards_for(way, q)),
    )  # fmt: skip


def dollar_per_million_tokens(way: Way, d: Deployment, q: Question) -> float | None:
    """Of output, the card full; None where no price is known or nothing runs."""
    price = d.gpu.price_dollar_per_hour
    return None if price is None or not way.rate_per_s else price / (way.rate_per_s * q.osl * 3600) * 1e6


def data(found: list[Way], deployment: Deployment, q: Question) -> dict[str, Any]:
    """The JSON contract."""
    return {
        "schema": "stallwise.sharing/1",
        "model": q.model.name,
        "gpu": deployment.gpu.name,
        "layout": deployment.label,
        "load": {"isl": q.isl, "osl": q.osl, "rate_per_s": q.rate_per_s, "ttft_s": q.ttft_s, "tpot_s": q.tpot_s},
        "ways": [
            {
                "by": w.by,
                "name": w.name,
                "models": w.models,
                "memory_bytes": w.memory_bytes,
                "bandwidth_byte_per_s": w.bandwidth_byte_per_s,
                "weight_bytes": w.room.weight_bytes,
                "kv_tokens": w.room.tokens,
                "tpot_alone_s": w.alone.tpot_s if w.alone else None,
                "tpot_busy_s": w.busy.tpot_s if w.busy else None,
                "ttft_busy_s": w.busy.ttft_s if w.busy else None,
                "token_per_s_each": w.limit.rate_per_s * q.osl if w.limit else None,
                "token_per_s_card": w.rate_per_s * q.osl if w.limit else None,
                "limited_by": w.limited_by,
                "dollar_per_million_tokens": dollar_per_million_tokens(w, deployment, q),
                "cards": cards_for(w, q),
                "apart": ISOLATION[w.by],
                "why_not": w.why_not,
            }
            for w in found
        ],
    }
