"""A sizing answer as a page."""

from __future__ import annotations

import numpy as np

from stallwise.planner.card_sharing import Sharing
from stallwise.planner.serving import Option, Point, Question, Sizing
from stallwise.planner.serving_check import Checked
from stallwise.render.answers import Block, Figure, Grid, Rows, Text, Verdict, page
from stallwise.render.pictures._chart import PANEL, Curve, panel
from stallwise.render.pictures._scatter import Spot, scatter
from stallwise.render.serving import SHOWN, layout, price, target, to_text
from stallwise.render.svg import picture
from stallwise.units import Unit, show

FAR = 3.0  # times the target: what lies beyond is no service


def to_html(
    sizing: Sizing,
    curve: list[Point],
    checked: Checked | None,
    sharing: list[Sharing],
    changes: list[tuple[str, Option | None]],
) -> str:
    """The whole page."""
    q = sizing.question
    best = sizing.options[0] if sizing.options else None
    blocks: list[Block | None] = [
        _options(sizing),
        _curve(curve, best, q) if best else None,
        _over_time(checked) if checked else None,
        _cheaper(sizing),
        Rows("Several on one card", [f"{s.way}: {s.models}, {_s(s.tpot_s)} a token ({s.note})" for s in sharing]),
        _changes(best, changes) if best else None,
        Text("The whole answer", to_text(sizing, curve, checked, sharing, changes)),
    ]
    return page(_verdict(sizing, checked), blocks, verb="plan serve", subject=target(q))


def _verdict(sizing: Sizing, checked: Checked | None) -> Verdict:
    q, tail = sizing.question, f"{len(sizing.options)} of {sizing.tried} layouts hold it"
    if not sizing.options:
        why = "Relax it, allow more GPUs, or other cards."
        return Verdict("Nothing holds the target", why, "", "bad", tail)
    best = sizing.options[0]
    cost = f"{price(best.dollar_per_hour)} $/h, {price(best.dollar_per_million_tokens(q.osl))} $ a million tokens"
    seen = ""
    if checked:
        seen = f"Simulated: {checked.good_share:.0%} of {checked.requests} requests within both targets."
    return Verdict(
        f"{layout(best)} holds it: {_s(best.now.ttft_s)} to the first token, {_s(best.now.tpot_s)} for each later one",
        f"{cost}; limited by {best.limited_by}, {best.headroom_share:.0%} headroom.", seen, "good", tail,
    )  # fmt: skip


def _options(sizing: Sizing) -> Grid:
    q = sizing.question
    rows = [
        (
            layout(o), f"{o.gpus}", price(o.dollar_per_hour), price(o.dollar_per_million_tokens(q.osl)), _s(o.now.ttft_s),
            _s(o.now.tpot_s), f"{o.now.batch:.0f}", f"{o.headroom_share:.0%}", o.limited_by,
        )
        for o in sizing.options[:SHOWN]
    ]  # fmt: skip
    head = ("layout", "GPUs", "$/h", "$/M tokens", "first token", "token", "batch", "headroom", "limited by")
    return Grid("Layouts that hold it", head, rows, frozenset(range(1, 8)), best=frozenset({0}))


def _curve(curve: list[Point], best: Option, q: Question) -> Figure:
    inside = [p for p in curve if p.tpot_s <= FAR * q.tpot_s] or curve
    points = [(p.rate_per_s * q.osl, p.tpot_s) for p in inside]
    spots = [
        Spot(p.rate_per_s * q.osl, p.tpot_s, f"{word}: {p.rate_per_s:.3g} requests/s, {_s(p.tpot_s)} a token", word)
        for p, word in ((best.now, "now"), (best.knee, "knee"), (best.limit, "limit"))
    ]
    drawn, height = scatter(
        spots,
        lambda v: f"{v:,.0f}",
        _s,
        "output tokens a second",
        curve=points,
        limit=(q.tpot_s, f"target {_s(q.tpot_s)}"),
    )
    title = "Time per token against throughput of one replica"
    rows = (("requests/s", "tokens/s", "token", "first token"),
            *((f"{p.rate_per_s:.3g}", f"{p.rate_per_s * q.osl:,.0f}", _s(p.tpot_s), _s(p.ttft_s)) for p in inside))  # fmt: skip
    return Figure("curve", title, picture(drawn, height, title), "Dashed: the target.", "", (), rows)


def _over_time(checked: Checked) -> Figure | None:
    if len(checked.time_s) < 2:
        return None
    x = np.array(checked.time_s)
    parts = panel([Curve("KV", x, np.array(checked.kv_share))], "KV cache in use", Unit.SHARE, "time_s")
    parts += panel(
        [Curve("queue", x, np.array(checked.waiting), "c2")], "requests waiting", Unit.COUNT, "time_s", PANEL
    )
    title = "Cache and queue of one replica, simulated"
    return Figure("time", title, picture(parts, 2 * PANEL + 4, title), "Poisson arrivals, spread lengths.")


def _cheaper(sizing: Sizing) -> Grid:
    rows = [
        (
            layout(f),
            f"{f.gpus}",
            price(f.dollar_per_hour),
            f.detail,
        )
        for f in sizing.cheaper
    ]
    return Grid("Why not cheaper" if sizing.options else "Nearest", ("layout", "GPUs", "$/h", "why it fails"), rows,
                frozenset({1, 2}))  # fmt: skip


def _changes(best: Option, changes: list[tuple[str, Option | None]]) -> Grid:
    rows = [
        (what, f"{best.gpus}", f"{o.gpus}" if o else "-", layout(o) if o else "nothing holds it") for what, o in changes
    ]
    return Grid("What would change it", ("if", "GPUs now", "GPUs then", "layout"), rows, frozenset({1, 2}))


def _s(seconds: float) -> str:
    return show(seconds, Unit.SECOND)
