"""Ways to use one card, beside each other: for a terminal and as JSON."""

from __future__ import annotations

from typing import Any

from stallwise.physics.specs.deployment import Deployment
from stallwise.planner.card_sharing import ISOLATION, WAYS, Way, cards_for
from stallwise.planner.serving import Question
from stallwise.units import Unit, show

_HEAD = (
    "way",
    "memory",
    "bandwidth",
    "a token alone",
    "all busy",
    "first token",
    "tokens/s each",
    "of the card",
    "$/M tok",
    "cards",
)


def to_text(found: list[Way], deployment: Deployment, q: Question) -> str:
    """A table of those that hold the target, then why the others do not, then what is kept apart."""
    holding = [w for w in found if w.limit is not None]
    lines = [
        f"{q.model.name} {deployment.label} on one {deployment.gpu.title}: {q.isl:.0f} + {q.osl:.0f} tokens, first token within "
        f"{_s(q.ttft_s)}, each later one within {_s(q.tpot_s)}; cards for {q.rate_per_s:.3g} requests a second",
    ]
    if holding:
        best = max(holding, key=lambda w: w.rate_per_s)
        lines += [
            f"most within the target: {best.name}, {show(best.rate_per_s * q.osl, Unit.TOKEN_PER_S)} of the card",
            "",
        ]
        rows = [_HEAD, *(_row(w, deployment, q) for w in holding)]
        widths = [max(len(row[i]) for row in rows) for i in range(len(_HEAD))]
        lines += ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows]
    else:
        lines += ["Nothing holds the target on this card."]
    failed = [w for w in found if w.limit is None]
    lines += [""] * bool(failed) + [f"not {w.name}: {w.why_not}" for w in failed]
    ways = [by for by in WAYS if any(w.by == by for w in found)]
    lines += ["", *(f"{by:5} {ISOLATION[by]}" for by in ways)]
    return "\n".join(line.rstrip() for line in lines)


def _row(way: Way, d: Deployment, q: Question) -> tuple[str, ...]:
    assert way.limit is not None and way.alone is not None and way.busy is not None
    dollar = dollar_per_million_tokens(way, d, q)
    return (
        way.name,
        show(way.memory_bytes, Unit.BYTE),
        show(way.bandwidth_byte_per_s, Unit.BYTE_PER_S),
        _s(way.alone.tpot_s),
        _s(way.busy.tpot_s),
        _s(way.busy.ttft_s),
        f"{way.limit.rate_per_s * q.osl:.0f}",
        f"{way.rate_per_s * q.osl:.0f}",
        "?" if dollar is None else f"{dollar:.2f}",
        str(cards_for(way, q)),
    )


def dollar_per_million_tokens(way: Way, d: Deployment, q: Question) -> float | None:
    """Of output, the card full; None where no price is known or nothing runs."""
    price = d.gpu.price_dollar_per_hour
    return None if price is None or not way.rate_per_s else price / (way.rate_per_s * q.osl * 3600) * 1e6


def _s(seconds: float) -> str:
    return show(seconds, Unit.SECOND)


def to_dict(found: list[Way], deployment: Deployment, q: Question) -> dict[str, Any]:
    """The same for programs."""
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
