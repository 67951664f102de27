"""A sizing answer: the layouts that hold a target, the memory, the curve, what would change it."""

from __future__ import annotations

from typing import Any

import numpy as np

from stallwise.planner.card_sharing import Sharing
from stallwise.planner.serving import Option, Point, Question, Refusal, Sizing
from stallwise.planner.serving_check import Checked
from stallwise.render.blocks import (
    Block,
    Column,
    Depth,
    Document,
    Facts,
    Picture,
    Series,
    Table,
    Verdict,
    Words,
    count,
    dollar,
    number,
    seconds,
    seconds_range,
    sentence,
    share,
    size,
    table,
)
from stallwise.render.blocks import document as filled
from stallwise.render.pictures._chart import PANEL, Curve, panel
from stallwise.render.pictures._scatter import Spot, scatter
from stallwise.render.plot import scatter as in_a_box
from stallwise.render.svg import picture
from stallwise.units import Unit, show

SHOWN = 8
FAR = 3.0  # times the target: what lies beyond is no service
MOST_REFUSALS = 3


def document(
    sizing: Sizing,
    curve: list[Point],
    checked: Checked | None,
    sharing: list[Sharing],
    changes: list[tuple[str, Option | None]],
    *,
    deep: bool = False,
) -> Document:
    """The whole answer."""
    q = sizing.question
    best = sizing.options[0] if sizing.options else None
    held: list[Block] = []
    if best:
        held = [_memory(best, q), _curve(curve, best, q, deep=deep)]
    return filled(
        _verdict(sizing, checked),
        _options(sizing),
        _cheaper(sizing),
        *held,
        *(_simulated(checked, deep=deep) if checked else ()),
        _shares(best, sharing) if best else None,
        _changes(best, changes) if best else None,
        verb="plan serve",
        subject=target(q),
    )


def target(q: Question) -> str:
    """What was asked for."""
    return (
        f"{q.model.name}: {q.rate_per_s:.3g} requests a second of {q.isl:.0f} + {q.osl:.0f} tokens, "
        f"first token within {_s(q.ttft_s)}, each later one within {_s(q.tpot_s)}"
    )


def layout(option: Option | Refusal) -> str:
    """How many of what, cut how."""
    return f"{option.replicas} x {option.deployment.gpu.name} {option.deployment.label}"


def _s(value: float) -> str:
    return show(value, Unit.SECOND)


def _verdict(sizing: Sizing, checked: Checked | None) -> Verdict:
    q = sizing.question
    worst = sorted(sizing.refused.items(), key=lambda x: -x[1])[:MOST_REFUSALS]
    not_these = f"; not: {', '.join(f'{n} ({why})' for why, n in worst)}" if worst else ""
    held = f"{len(sizing.options)} of {sizing.tried} layouts hold it{not_these}."
    if not sizing.options:
        return Verdict(
            "Nothing holds the target: relax it, allow more GPUs, or other cards.", f"{target(q)}. {held}", "", "bad"
        )
    best = sizing.options[0]
    (t_low, t_high), (f_low, f_high) = best.interval
    what: Words = (
        f"{layout(best)} holds it: ", seconds(best.now.ttft_s), " to the first token, ", seconds(best.now.tpot_s),
        " for each later one",
    )  # fmt: skip
    sure = ("80% sure: first token ", seconds_range(f_low, f_high), ", later ones ", seconds_range(t_low, t_high), ".")
    seen: Words = ""
    if checked:
        seen = ("Simulated: ", share(checked.good_share), f" of {checked.requests} requests within both targets.")
    release = (
        ""
        if best.deployment.engine_version
        else " The engine's release is not stated: intervals are wider (--engine-version)."
    )
    return Verdict(what, (f"{target(q)}. {held} ", *sure, release), seen, "good")


def _options(sizing: Sizing) -> Table:
    q = sizing.question
    rows = (
        (
            layout(o), count(o.gpus), dollar(o.dollar_per_hour), dollar(o.dollar_per_million_tokens(q.osl)),
            seconds(o.now.ttft_s), seconds(o.now.tpot_s), count(o.now.batch), share(o.headroom_share), o.limited_by,
        )
        for o in sizing.options[:SHOWN]
    )  # fmt: skip
    head = (Column("layout"), number("GPUs"), number("$/h", 2), number("$/M tokens", 1), number("TTFT"), number("token"),
            number("batch", 5), number("headroom", 4), Column("limited by", 3))  # fmt: skip
    return table("Layouts that hold it", head, rows, best=frozenset({0}))


def _cheaper(sizing: Sizing) -> Table:
    """Why nothing below the first will do."""
    rows = ((layout(f), count(f.gpus), dollar(f.dollar_per_hour), f.detail) for f in sizing.cheaper)
    head = (Column("layout"), number("GPUs"), number("$/h", 1), sentence("why it fails"))
    return table("Why not cheaper" if sizing.options else "Nearest", head, rows)


def _memory(o: Option, q: Question) -> Facts:
    r = o.room
    rows: tuple[tuple[str, Words], ...] = (
        ("weights", size(r.weight_bytes)),
        ("KV cache", (size(r.kv_bytes), ", ", size(r.bytes_per_token), " per token and GPU: a replica holds ", count(r.tokens),
                      " tokens, ", count(r.requests(q.isl + q.osl)), " requests")),
        ("reserved", size(r.reserved_bytes)),
        ("left to others", (size(r.memory_bytes - r.usable_bytes), " of ", size(r.memory_bytes))),
    )  # fmt: skip
    return Facts(rows, title="Memory of one GPU")


def _curve(curve: list[Point], o: Option, q: Question, *, deep: bool) -> Picture:
    """Time per token against throughput: drawn in characters, or as a picture."""
    inside = [p for p in curve if p.tpot_s <= FAR * q.tpot_s] or curve
    if deep:
        return _picture(curve, o, q)
    spots = [(p.rate_per_s * q.osl, p.tpot_s * 1e3, "·") for p in inside]
    for point, mark in ((o.knee, "k"), (o.limit, "L"), (o.now, "●")):
        spots.append((point.rate_per_s * q.osl, point.tpot_s * 1e3, mark))
    box = in_a_box([(x, y) for x, y, _ in spots], [mark for _, _, mark in spots])
    most = max(y for _, y, _ in spots)
    rows = [f"{f'{most:.0f} ms' if i == 0 else '':>10} |{row}" for i, row in enumerate(box)]
    end = f"{'':>12}up to {max(x for x, _, _ in spots):,.0f} output tokens a second"
    marks = f"● now, k knee at {o.knee.rate_per_s:.3g}/s, L limit at {o.limit.rate_per_s:.3g}/s"
    title = f"Latency of one replica against its throughput ({marks})"
    return Picture(
        "curve", title, picture([], 1, title), drawn=(*rows, f"{'':>10} +{'-' * 56}", end), depth=Depth.FIRST
    )


def _picture(curve: list[Point], best: Option, q: Question) -> Picture:
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
    return Picture("curve", title, picture(drawn, height, title), "Dashed: the target.", "", (), rows)


def _over_time(checked: Checked) -> Picture | None:
    if len(checked.time_s) < 2:
        return None
    x = np.array(checked.time_s)
    parts = panel([Curve("KV", x, np.array(checked.kv_share))], "KV cache in use", Unit.SHARE, "time_s")
    parts += panel(
        [Curve("queue", x, np.array(checked.waiting), "c2")], "requests waiting", Unit.COUNT, "time_s", PANEL
    )
    title = "Cache and queue of one replica, simulated"
    return Picture("time", title, picture(parts, 2 * PANEL + 4, title), "Poisson arrivals, spread lengths.")


def _simulated(c: Checked, *, deep: bool) -> tuple[Block, ...]:
    rows = (
        ("first token", seconds(c.ttft_p50_s), seconds(c.ttft_p99_s)),
        ("later tokens", seconds(c.tpot_p50_s), seconds(c.tpot_p99_s)),
    )
    note = f"{c.requests} requests of one replica; {c.preemptions} preemptions."
    times = table("Simulated", ("time to", number("p50"), number("p99")), rows, note=note)
    if deep:
        drawn = _over_time(c)
        return (times, drawn) if drawn else (times,)
    return (
        times,
        Series("KV over time", c.kv_share, Unit.SHARE, 1.0, high=share(max(c.kv_share, default=0))),
        Series("queue over time", c.waiting, Unit.COUNT, high=count(max(c.waiting, default=0))),
    )


def _shares(best: Option, sharing: list[Sharing]) -> Table:
    rows = ((s.way, count(s.models), seconds(s.tpot_s), s.note) for s in sharing)
    head = (Column("way"), number("models"), number("token"), sentence("note", 1))
    return table(f"Several on one {best.deployment.gpu.title}", head, rows)


def _changes(best: Option, changes: list[tuple[str, Option | None]]) -> Table:
    rows = (
        (what, count(best.gpus), count(o.gpus) if o else "-", layout(o) if o else "nothing holds the target")
        for what, o in changes
    )
    head = (Column("if"), number("GPUs now"), number("GPUs then"), Column("layout", 1))
    return table("What would change it", head, rows)


def data(
    sizing: Sizing,
    curve: list[Point],
    checked: Checked | None,
    sharing: list[Sharing],
    changes: list[tuple[str, Option | None]],
) -> dict[str, Any]:
    """The JSON contract."""
    q = sizing.question
    return {
        "schema": "stallwise.sizing/1",
        "model": q.model.name,
        "load": {"isl": q.isl, "osl": q.osl, "rate_per_s": q.rate_per_s, "ttft_s": q.ttft_s, "tpot_s": q.tpot_s},
        "tried": sizing.tried,
        "refused": sizing.refused,
        "sorted_by": q.sort,
        "cheaper": [
            {
                "gpu": f.deployment.gpu.name,
                "layout": f.deployment.label,
                "replicas": f.replicas,
                "gpus": f.gpus,
                "dollar_per_hour": f.dollar_per_hour,
                "why": f.why,
                "detail": f.detail,
            }
            for f in sizing.cheaper
        ],
        "options": [_option(o, q) for o in sizing.options],
        "curve": [_point(p) for p in curve],
        "simulated": None if checked is None else {k: getattr(checked, k) for k in checked.__dataclass_fields__},
        "sharing": [{k: getattr(s, k) for k in s.__dataclass_fields__} for s in sharing],
        "changes": [
            {"what": what, "gpus": o.gpus if o else None, "option": _option(o, q) if o else None} for what, o in changes
        ],
    }


def _option(o: Option, q: Question) -> dict[str, Any]:
    d, r = o.deployment, o.room
    (t_low, t_high), (f_low, f_high) = o.interval
    return {
        "gpu": d.gpu.name, "engine": d.engine, "layout": d.label, "tp": d.tp, "pp": d.pp, "dp": d.dp, "ep": d.ep,
        "weights": d.weights, "kv": d.kv_dtype, "replicas": o.replicas, "gpus": o.gpus,
        "dollar_per_hour": o.dollar_per_hour, "dollar_per_million_tokens": o.dollar_per_million_tokens(q.osl),
        "now": _point(o.now), "limit": _point(o.limit), "knee": _point(o.knee), "headroom_share": o.headroom_share,
        "limited_by": o.limited_by, "tpot_interval_s": [t_low, t_high], "ttft_interval_s": [f_low, f_high],
        "memory": {"weight_bytes": r.weight_bytes, "kv_bytes": r.kv_bytes, "reserved_bytes": r.reserved_bytes,
                   "memory_bytes": r.memory_bytes, "kv_tokens": r.tokens, "kv_bytes_per_token": r.bytes_per_token},
    }  # fmt: skip


def _point(p: Point) -> dict[str, float]:
    return {
        "batch": p.batch,
        "rate_per_s": p.rate_per_s,
        "tpot_s": p.tpot_s,
        "ttft_s": p.ttft_s,
        "prefill_load": p.prefill_load,
    }
