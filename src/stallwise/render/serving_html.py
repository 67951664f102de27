"""A sizing answer as one HTML page in the style of every other report: tables, plots, and the terminal's text."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from stallwise.render.html import asset, content_hash
from stallwise.render.serving import SHOWN, to_text
from stallwise.render.serving_svg import latency_svg, over_time_svg
from stallwise.search.card_sharing import Sharing
from stallwise.search.serving import Option, Point, Sizing
from stallwise.search.serving_check import Checked
from stallwise.units import Unit, show


def to_html(
    sizing: Sizing,
    curve: list[Point],
    checked: Checked | None,
    sharing: list[Sharing],
    changes: list[tuple[str, Option | None]],
) -> str:
    """Self-contained: no script, nothing fetched."""
    q = sizing.question
    parts = [_section("h-answer", f"Serving {q.model.name}", _options(sizing))]
    if sizing.cheaper:
        parts.append(_section("h-cheaper", "Why not cheaper", _cheaper(sizing)))
    if sizing.options:
        best = sizing.options[0]
        points = [(p.rate_per_s * q.osl, p.tpot_s * 1e3) for p in curve if p.tpot_s <= 3 * q.tpot_s]
        marks = [
            (p.rate_per_s * q.osl, p.tpot_s * 1e3, name)
            for p, name in ((best.knee, "knee"), (best.limit, "limit"), (best.now, "now"))
        ]
        plot = latency_svg(points, marks, q.tpot_s * 1e3, "output tokens a second")
        parts.append(_section("h-curve", "Latency against throughput of one replica", plot))
    if checked:
        plot = over_time_svg(checked.time_s, checked.kv_share, checked.waiting)
        parts.append(_section("h-time", "KV cache and queue over time, simulated", plot))
    text = escape(to_text(sizing, curve, checked, sharing, changes))
    parts.append(_section("h-text", "The whole answer", f'<div class="scroll"><pre>{text}</pre></div>'))
    style = asset("report.css")
    head = (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src '{content_hash(style)}'\">"
        f"<title>stallwise: serving {escape(q.model.name)}</title><style>{style}</style></head>"
    )
    top = f'<header class="top"><b>stallwise</b><span class="grow">plan serve: {escape(q.model.name)}</span></header>'
    return f"{head}<body>{top}<main>{''.join(parts)}</main></body></html>\n"


def _section(name: str, title: str, body: str) -> str:
    return f'<section aria-labelledby="{name}"><h2 id="{name}">{escape(title)}</h2>{body}</section>'


def _options(sizing: Sizing) -> str:
    q = sizing.question
    if not sizing.options:
        return "<p>Nothing holds the target: relax it, allow more GPUs, or other cards.</p>"
    rows = [
        (
            f"{o.replicas} x {o.deployment.gpu.name} {o.deployment.label}", f"{o.gpus}", _price(o.dollar_per_hour),
            _price(o.dollar_per_million_tokens(q.osl)), show(o.now.ttft_s, Unit.SECOND), show(o.now.tpot_s, Unit.SECOND),
            f"{o.headroom_share:.0%}", o.limited_by,
        )
        for o in sizing.options[:SHOWN]
    ]  # fmt: skip
    return _table(("layout", "GPUs", "$/h", "$/M tokens", "first token", "token", "headroom", "limited by"), rows)


def _cheaper(sizing: Sizing) -> str:
    rows = [
        (
            f"{f.replicas} x {f.deployment.gpu.name} {f.deployment.label}",
            f"{f.gpus}",
            _price(f.dollar_per_hour),
            f.detail,
        )
        for f in sizing.cheaper
    ]
    return _table(("layout", "GPUs", "$/h", "why it fails"), rows)


def _table(heads: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    head = "".join(f'<th scope="col">{escape(h)}</th>' for h in heads)
    body = "".join("<tr>" + "".join(f"<td>{escape(c)}</td>" for c in row) + "</tr>" for row in rows)
    return f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def _price(dollar: float | None) -> str:
    return "?" if dollar is None else f"{dollar:.2f}"
