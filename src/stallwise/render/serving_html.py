"""A sizing answer as one HTML page: the text of the terminal, and its plots drawn."""

from __future__ import annotations

from html import escape

from stallwise.render.serving import to_text
from stallwise.render.serving_svg import latency_svg, over_time_svg
from stallwise.search.card_sharing import Sharing
from stallwise.search.serving import Option, Point, Sizing
from stallwise.search.serving_check import Checked


def to_html(
    sizing: Sizing,
    curve: list[Point],
    checked: Checked | None,
    sharing: list[Sharing],
    changes: list[tuple[str, Option | None]],
) -> str:
    """Self-contained: no script, nothing fetched."""
    q = sizing.question
    parts = [f"<h1>Serving {escape(q.model.name)}</h1>"]
    if sizing.options:
        best = sizing.options[0]
        points = [(p.rate_per_s * q.osl, p.tpot_s * 1e3) for p in curve if p.tpot_s <= 3 * q.tpot_s]
        marks = [
            (p.rate_per_s * q.osl, p.tpot_s * 1e3, name)
            for p, name in ((best.knee, "knee"), (best.limit, "limit"), (best.now, "now"))
        ]
        parts += [
            "<h2>Latency against throughput of one replica</h2>",
            latency_svg(points, marks, q.tpot_s * 1e3, "output tokens a second"),
        ]
    if checked:
        parts += [
            "<h2>KV cache and queue over time, simulated</h2>",
            over_time_svg(checked.time_s, checked.kv_share, checked.waiting),
        ]
    parts.append(f"<pre>{escape(to_text(sizing, curve, checked, sharing, changes))}</pre>")
    style = (
        "body{font-family:sans-serif;margin:2rem;max-width:80rem}pre{overflow-x:auto}svg{max-width:100%;height:auto}"
    )
    head = f'<!doctype html><html lang="en"><meta charset="utf-8"><title>stallwise</title><style>{style}</style>'
    return f"{head}{''.join(parts)}</html>\n"
