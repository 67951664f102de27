"""A sizing answer for a terminal and as JSON: the layouts, the memory, the curve, what would change it."""

from __future__ import annotations

from typing import Any

from stallwise.planner.card_sharing import Sharing
from stallwise.planner.serving import Option, Point, Question, Refusal, Sizing
from stallwise.planner.serving_check import Checked
from stallwise.render.plot import scatter, sparkline
from stallwise.units import Unit, show

SHOWN = 8


def to_text(
    sizing: Sizing,
    curve: list[Point],
    checked: Checked | None,
    sharing: list[Sharing],
    changes: list[tuple[str, Option | None]],
) -> str:
    """The whole answer."""
    q = sizing.question
    lines = [
        target(q),
        f"{len(sizing.options)} of {sizing.tried} layouts hold it" + _refused(sizing),
    ]
    if not sizing.options:
        lines += ["Nothing holds the target: relax it, allow more GPUs, or other cards.", "", *_cheaper(sizing)]
        return "\n".join(line.rstrip() for line in lines)
    best = sizing.options[0]
    lines += [
        "",
        *_table(sizing.options[:SHOWN], q),
        *_cheaper(sizing),
        *_stated(best),
        "",
        *_memory(best, q),
        "",
        *_curve(curve, best, q),
    ]
    if checked:
        lines += ["", *_checked(checked, q)]
    lines += ["", *_shares(best, sharing)]
    lines += _changes(best, changes)
    return "\n".join(line.rstrip() for line in lines)


def target(q: Question) -> str:
    """What was asked for."""
    return (
        f"{q.model.name}: {q.rate_per_s:.3g} requests a second of {q.isl:.0f} + {q.osl:.0f} tokens, "
        f"first token within {_s(q.ttft_s)}, each later one within {_s(q.tpot_s)}"
    )


def layout(option: Option | Refusal) -> str:
    """How many of what, cut how."""
    return f"{option.replicas} x {option.deployment.gpu.name} {option.deployment.label}"


def price(dollar: float | None) -> str:
    """Dollars, or a question mark where nobody said them."""
    return "?" if dollar is None else f"{dollar:.2f}"


def _s(seconds: float) -> str:
    return show(seconds, Unit.SECOND)


def _refused(sizing: Sizing) -> str:
    if not sizing.refused:
        return ""
    worst = sorted(sizing.refused.items(), key=lambda x: -x[1])
    return "; not: " + ", ".join(f"{count} ({why})" for why, count in worst[:3])


def _table(options: tuple[Option, ...], q: Question) -> list[str]:
    rows = [
        f"{'':3}{'layout':34}{'GPUs':>6}{'$/h':>8}{'$/M tok':>9}{'TTFT':>9}{'token':>9}{'batch':>7}{'headroom':>10}  limited by"
    ]
    for i, o in enumerate(options):
        hour, million = o.dollar_per_hour, o.dollar_per_million_tokens(q.osl)
        rows.append(
            f"{i + 1:<3}{layout(o)[:33]:34}{o.gpus:>6}{price(hour):>8}{price(million):>9}"
            f"{_s(o.now.ttft_s):>9}{_s(o.now.tpot_s):>9}{o.now.batch:>7.0f}{o.headroom_share:>10.0%}  {o.limited_by}"
        )
    (t_low, t_high), (f_low, f_high) = options[0].interval
    rows.append(f"   80% interval of the first: TTFT {_s(f_low)} to {_s(f_high)}, token {_s(t_low)} to {_s(t_high)}")
    return rows


def _cheaper(sizing: Sizing) -> list[str]:
    """Why nothing below the first will do."""
    return [
        f"{('why not cheaper' if sizing.options else 'nearest') if i == 0 else '':20} "
        f"{layout(f)} ({f.gpus} GPU{'s' * (f.gpus > 1)}, {price(f.dollar_per_hour)} $/h): {f.detail}"
        for i, f in enumerate(sizing.cheaper)
    ]


def _stated(o: Option) -> list[str]:
    if o.deployment.engine_version:
        return []
    return [f"{'not stated':20} the engine's release: half way between early and late ones, and a wider interval"]


def _memory(o: Option, q: Question) -> list[str]:
    r = o.room
    return [
        f"memory of one GPU    {r.memory_bytes:,.0f} B: weights {r.weight_bytes:,.0f}, KV {r.kv_bytes:,.0f}, "
        f"reserved {r.reserved_bytes:,.0f}, left to others {r.memory_bytes - r.usable_bytes:,.0f}",
        f"KV                   {r.bytes_per_token:,.0f} B a token and GPU; a replica holds {r.tokens:,.0f} tokens, "
        f"{r.requests(q.isl + q.osl):,.0f} requests",
    ]


def _curve(curve: list[Point], o: Option, q: Question) -> list[str]:
    inside = [p for p in curve if p.tpot_s <= 3 * q.tpot_s] or curve
    points = [(p.rate_per_s * q.osl, p.tpot_s * 1e3) for p in inside]
    marks = ["·"] * len(points)
    for point, mark in ((o.knee, "k"), (o.limit, "L"), (o.now, "●")):
        points.append((point.rate_per_s * q.osl, point.tpot_s * 1e3))
        marks.append(mark)
    box = scatter(points, marks)
    most = max(p[1] for p in points)
    rows = [
        f"latency of one replica against its throughput (● now, k knee at {o.knee.rate_per_s:.3g}/s, "
        f"L limit at {o.limit.rate_per_s:.3g}/s)"
    ]
    rows += [f"{f'{most:.0f} ms' if i == 0 else '':>10} |{row}" for i, row in enumerate(box)]
    return [*rows, f"{'':>10} +{'-' * 56}", f"{'':>12}up to {max(p[0] for p in points):,.0f} output tokens a second"]


def _checked(c: Checked, q: Question) -> list[str]:
    return [
        f"simulated            {c.requests} requests of one replica: TTFT p50 {_s(c.ttft_p50_s)}, p99 {_s(c.ttft_p99_s)}; "
        f"token p50 {_s(c.tpot_p50_s)}, p99 {_s(c.tpot_p99_s)}; {c.good_share:.0%} within both targets; {c.preemptions} preemptions",
        f"KV over time         |{sparkline(c.kv_share, most=1.0)}| up to {max(c.kv_share, default=0):.0%}",
        f"queue over time      |{sparkline(c.waiting)}| up to {max(c.waiting, default=0):.0f}",
    ]


def _shares(best: Option, sharing: list[Sharing]) -> list[str]:
    card = best.deployment.gpu.title
    return [
        f"{'shares a card' if i == 0 else '':20} {s.way}: {s.models} of these on one {card}, {_s(s.tpot_s)} a token ({s.note})"
        for i, s in enumerate(sharing)
    ]


def _changes(best: Option, changes: list[tuple[str, Option | None]]) -> list[str]:
    rows = []
    for i, (what, option) in enumerate(changes):
        label = "would change it" if i == 0 else ""
        if option is None:
            answer = "nothing holds the target"
        else:
            answer = f"{best.gpus} -> {option.gpus} GPUs ({layout(option)})"
        rows.append(f"{label:20} {what}: {answer}")
    return rows


def to_dict(
    sizing: Sizing,
    curve: list[Point],
    checked: Checked | None,
    sharing: list[Sharing],
    changes: list[tuple[str, Option | None]],
) -> dict[str, Any]:
    """The same for programs."""
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
