"""A training plan as a page."""

from __future__ import annotations

from stallwise.planner.search import Candidate, Plan
from stallwise.render.answers import Block, Figure, Grid, Rows, Text, Verdict, page
from stallwise.render.pictures._bars import Bar, bars
from stallwise.render.pictures._memory_kinds import in_order, shade_of
from stallwise.render.pictures._scatter import Spot, scatter
from stallwise.render.plan import GIB, run_line, to_text
from stallwise.render.svg import picture
from stallwise.units import Unit, show

SHOWN_SHARE = 0.005  # of the whole: a smaller part is not drawn
SHADES = 10


def to_html(plan: Plan, explained: list[str] | None = None) -> str:
    """The whole page."""
    best = plan.best[0]
    label = (
        f"{plan.model.name} on {plan.cluster.gpus} x {plan.cluster.gpu.title}, "
        f"{plan.workload.global_batch} x {plan.workload.seq:,} tokens a step"
    )
    blocks: list[Block | None] = [
        _time(plan), _memory(plan), _layouts(plan), _frontier(plan), _knobs(plan, best), _known(plan), _sizes(plan),
        Rows("What would change it", plan.would_change),
        Rows("On the board", explained or []),
        Text("The whole answer", to_text(plan, explained)),
    ]  # fmt: skip
    return page(_verdict(plan, best), blocks, verb="plan train", subject=label)


def _verdict(plan: Plan, best: Candidate) -> Verdict:
    memory = f"{best.memory_bytes / GIB:.1f} of {plan.cluster.gpu.memory_bytes / GIB:.0f} GiB on the fullest GPU"
    return Verdict(
        f"{best.layout.label}: {_s(best.seconds)} a step ({_s(best.low_s)} to {_s(best.high_s)})",
        f"{best.tokens_per_s:,.0f} tokens/s, MFU {best.mfu_share:.1%} of the {best.mfu_against}; {memory}.",
        _sentence(run_line(plan, best)),
        "unclear" if plan.tight else "good",
        f"of {plan.considered:,} layouts {plan.feasible:,} fit, {plan.equal:,} are equal within what predictions err",
    )


def _time(plan: Plan) -> Figure:
    names = [
        n for n, v in sorted(plan.best[0].parts.items(), key=lambda p: -p[1]) if v > SHOWN_SHARE * plan.best[0].seconds
    ]
    shade = {n: f"m{i % SHADES + 1}" for i, n in enumerate(names)}
    rows = []
    for c in plan.best:
        parts = [(shade[n], c.parts.get(n, 0.0), f"{_words(n)}: {_s(c.parts.get(n, 0.0))}") for n in names]
        rest = c.seconds - sum(length for _, length, _ in parts)
        rows.append(Bar(c.layout.label, [*parts, ("a-other", max(rest, 0.0), "other")], (c.low_s, c.high_s), ""))
    drawn, height = bars(rows, _s)
    title = "Where a step goes"
    return Figure("time", title, picture(drawn, height, title), "The first layouts; black: 90% sure.", "",
                  tuple((shade[n], _words(n)) for n in names))  # fmt: skip


def _memory(plan: Plan) -> Figure:
    kinds = in_order({n for c in plan.best for n, size in c.memory_parts.items() if size > 0.05 * GIB})
    rows = [
        Bar(c.layout.label, [(shade_of(n), c.memory_parts.get(n, 0.0) / GIB, f"{n}: {_g(c.memory_parts.get(n, 0.0))}") for n in kinds],
            behind=_g(c.memory_bytes))
        for c in plan.best
    ]  # fmt: skip
    limit = (plan.cluster.gpu.memory_bytes / GIB, "the card")
    drawn, height = bars(rows, _axis, limit)
    title = "What fills the fullest GPU"
    return Figure("memory", title, picture(drawn, height, title), "At the peak of a step.", "",
                  tuple((shade_of(n), n) for n in kinds))  # fmt: skip


def _layouts(plan: Plan) -> Grid:
    why = ["the first", *plan.lost]
    rows = [
        (
            c.layout.label,
            _s(c.seconds),
            f"{_s(c.low_s)} to {_s(c.high_s)}",
            f"{c.mfu_share:.1%}",
            _g(c.memory_bytes),
            reason,
        )
        for c, reason in zip(plan.best, why, strict=False)
    ]
    head = ("layout", "a step", "90% sure", "MFU", "memory", "why it is not the first")
    return Grid("The first layouts", head, rows, frozenset({1, 2, 3, 4}), best=frozenset({0}))


def _frontier(plan: Plan) -> Figure | None:
    if len(plan.frontier) < 2:
        return None
    spots = [Spot(c.memory_bytes / GIB, c.seconds, c.layout.label) for c in plan.frontier]
    title = "Time against memory: nothing is better in both"
    drawn, height = scatter(spots, _axis, _s, "memory of the fullest GPU", joined=True, zero=False)
    rows = (
        ("layout", "a step", "memory"),
        *((c.layout.label, _s(c.seconds), _g(c.memory_bytes)) for c in plan.frontier),
    )
    return Figure("frontier", title, picture(drawn, height, title), "Lower and further left is better.", "", (), rows)


def _knobs(plan: Plan, best: Candidate) -> Grid:
    rows = [
        (c.knob, c.layout.label, f"{c.seconds / best.seconds - 1:+.1%}",
         f"{(c.memory_bytes - best.memory_bytes) / GIB:+.1f} GiB", "" if c.fits else c.fit)
        for c in plan.sensitivity
    ]  # fmt: skip
    return Grid("One knob moved", ("knob", "layout", "time", "memory", "remark"), rows, frozenset({2, 3}))


def _known(plan: Plan) -> Grid:
    rows = [
        (a.name, _s(a.seconds) if a.seconds is not None else f"x{a.half_width_ratio:.2f} either way",
         f"{_s(a.low_s)} to {_s(a.high_s)}" if a.low_s is not None and a.high_s is not None else "", a.basis)
        for a in plan.answers
    ]  # fmt: skip
    taken = frozenset(i for i, a in enumerate(plan.answers) if a.taken)
    return Grid("By how much is known of the cluster", ("what is known", "a step", "90% sure", "from"), rows,
                frozenset({1, 2}), best=taken)  # fmt: skip


def _sizes(plan: Plan) -> Grid:
    rows = [
        (f"{gpus:,}", _s(c.seconds), f"{gpus / c.tokens_per_s * 1e12 / 3600:,.0f}", c.layout.label)
        for gpus, c in plan.sizes
    ]
    return Grid("Time against cost", ("GPUs", "a step", "GPU hours for a trillion tokens", "layout"), rows,
                frozenset({0, 1, 2}))  # fmt: skip


def _sentence(words: str) -> str:
    return words.strip()[:1].upper() + words.strip()[1:] + "."


def _words(name: str) -> str:
    return name.replace("_", " ")


def _s(seconds: float) -> str:
    return show(seconds, Unit.SECOND)


def _axis(gib: float) -> str:
    return f"{gib:g} GiB"


def _g(size_bytes: float) -> str:
    return f"{size_bytes / GIB:.1f} GiB"
