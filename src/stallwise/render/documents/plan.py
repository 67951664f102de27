"""A training plan: the fastest layout that fits, what fills its step and its memory, and what surrounds it."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from stallwise.planner.search import Candidate, Change, Plan
from stallwise.planner.standing import AnswerSeconds
from stallwise.render.blocks import (
    GIB,
    Column,
    Document,
    Facts,
    Part,
    Picture,
    Table,
    Verdict,
    Words,
    count,
    dollar,
    gib,
    joined,
    number,
    seconds,
    seconds_range,
    sentence,
    share,
    size,
    steps,
    table,
)
from stallwise.render.blocks import document as filled
from stallwise.render.part_names import part_name
from stallwise.render.pictures._bars import Bar, bars
from stallwise.render.pictures._memory_kinds import in_order, shade_of
from stallwise.render.pictures._scatter import Spot, scatter
from stallwise.render.svg import picture
from stallwise.units import Unit, show

SHOWN_SHARE = 0.005  # of the step: a smaller part is not shown
SHOWN_BYTES = 0.05 * GIB
SHADES = 10
TRILLION = 1e12
HOUR_S = 3600.0
NOTED_SHARE = 0.005  # of the interval: less is not worth a word
BEHIND_SHARE = 0.001


def document(plan: Plan, explained: list[str] | None = None, *, deep: bool = False) -> Document:
    """The answer first, then what surrounds it."""
    best = plan.best[0]
    return filled(
        _verdict(plan, best),
        Facts(_facts(plan, best)),
        steps("", plan.remarks, label="note"),
        _others(plan, best),
        _known(plan),
        _frontier_rows(plan),
        _knobs(plan, best),
        _run(plan),
        _sizes(plan),
        steps("What would change it", plan.would_change),
        *([_time(plan), _memory(plan), _frontier(plan)] if deep else []),
        steps("The arithmetic", explained or ()),
        verb="plan train",
        subject=f"{plan.model.name} on {plan.cluster.gpus} x {plan.cluster.gpu.title}, "
        f"{plan.workload.global_batch} x {plan.workload.seq:,} tokens a step",
    )


def _verdict(plan: Plan, best: Candidate) -> Verdict:
    card = plan.cluster.gpu
    what: Words = (
        f"{best.layout.label}: ", seconds(best.seconds), " per step (", seconds_range(best.low_s, best.high_s),
        ", 90% sure) · MFU ", share(best.mfu_share, 1),
    )  # fmt: skip
    setup = (
        f"{plan.model.name} ({plan.model.parameters().total / 1e9:.1f} B) on {plan.cluster.gpus} x {card.title}, "
        f"{plan.workload.global_batch} x {plan.workload.seq:,} tokens per step"
    )
    why = f"{setup}. Of {plan.considered:,} layouts {plan.feasible:,} fit; searched in {show(plan.search_s, Unit.SECOND)}."
    if plan.tight:
        why = f"{setup}. Nothing fits for certain: these may, the leanest first. What would fit: {', or '.join(plan.would_fit)}."
    elif plan.equal > 1:
        ahead = best.seconds / plan.fastest_s - 1
        why += (
            f" {plan.equal:,} of them are equal within the error of prediction; the one with room to spare and fewest axes "
            "stands first" + (f", {ahead:.1%} behind the fastest." if ahead > BEHIND_SHARE else ".")
        )
    return Verdict(what, why, "", "unclear" if plan.tight else "good")


def _facts(plan: Plan, best: Candidate) -> tuple[tuple[str, Words], ...]:
    """What the first layout gives, uses and costs."""
    parts = sorted(((v, n) for n, v in best.parts.items() if v > SHOWN_SHARE * best.seconds), reverse=True)
    stored = sorted(((v, n) for n, v in best.memory_parts.items() if v > SHOWN_BYTES), reverse=True)
    card = plan.cluster.gpu
    rows: list[tuple[str, Words]] = [
        ("speed", (count(best.tokens_per_s), " tokens/s; MFU is of the ", f"{best.mfu_against}; HFU ", share(best.hfu_share, 1))),
        ("memory", (
            gib(best.memory_bytes), f" of {card.memory_bytes / GIB:.0f} GiB on the fullest GPU (",
            gib(best.memory_low_bytes), " to ", gib(best.memory_high_bytes),
            f", 90% sure: {best.fit}; {best.peak_stage} stage, {best.peak_moment})",
        )),
        ("step", joined([(f"{part_name(n)} ", share(v / best.seconds)) for v, n in parts], " · ")),
        ("bytes", joined([(f"{part_name(n)} ", gib(v)) for v, n in stored], " · ")),
        ("run", _length(plan, best)),
    ]  # fmt: skip
    if plan.pipeline is not None:
        p = plan.pipeline
        rows.append(("bubble", (
            f"{p.schedule}, simulated: idle ", share(p.bubble_step_share, 1), " of the step (",
            share(p.bubble_useful_ratio, 1), f" of useful time), fullest stage {p.slowest_stage}",
        )))  # fmt: skip
    if best.dollar_per_step:
        rows.append(("price", (dollar(best.dollar_per_step), " per step")))
    return tuple(rows)


def _length(plan: Plan, best: Candidate) -> Words:
    """What the whole run takes and costs."""
    if not plan.workload.tokens:
        return ("one trillion tokens take ", seconds(TRILLION / best.tokens_per_s))
    length_s = plan.workload.tokens / best.tokens_per_s
    price = plan.cluster.price_per_gpu_hour
    cost: tuple[Part, ...] = (", ", dollar(price * plan.cluster.gpus * length_s / HOUR_S)) if price else ()
    return (f"{plan.workload.tokens:.3g} tokens take ", seconds(length_s), *cost, " without failures")


def _others(plan: Plan, best: Candidate) -> Table:
    rows = (
        (
            c.layout.label,
            seconds(c.seconds),
            seconds_range(c.low_s, c.high_s),
            share(c.mfu_share, 1),
            gib(c.memory_bytes),
            why,
        )
        for c, why in zip(plan.best[1:], plan.lost, strict=True)
    )
    head = (Column("layout"), number("step"), number("90% sure", 3), number("MFU", 2), number("memory"),
            sentence("why it is not first", 1))  # fmt: skip

    return table("Next", head, rows)


def _known(plan: Plan) -> Table:
    """How sure, by how much is known of the cluster; the published run that times start from."""
    rows = ((">" if a.taken else "", a.name, *_ends(a), a.basis) for a in plan.answers)
    head = (Column("used"), Column("known"), number("step"), number("90% sure"), sentence("from", 1))
    notes = []
    if plan.picked_ratio > 1 + NOTED_SHARE:
        notes.append(f"The upper end is {plan.picked_ratio - 1:.0%} higher for having been picked among many.")
    if plan.anchor is not None:
        a = plan.anchor
        own = plan.best[0].tokens_per_s / plan.cluster.gpus
        notes.append(
            f"Times start from {a.source}: {a.tokens_per_s_per_gpu:,.0f} tokens/s/GPU on {a.gpus} GPUs at {a.seq:,} tokens "
            f"({a.label}); this plan {own:,.0f}, {own / a.tokens_per_s_per_gpu - 1:+.0%}."
        )
    if plan.cluster.gpus > 1 and not plan.cluster.wiring_known:
        notes.append(
            "How the cards are plugged in decides: the interval is three times as wide until --wiring and --peer-access say."
        )
    taken = frozenset(i for i, a in enumerate(plan.answers) if a.taken)
    return table("By how much is known of the cluster (90% sure)", head, rows, best=taken, note=" ".join(notes))


def _ends(answer: AnswerSeconds) -> tuple[Words, Words]:
    if answer.seconds is None or answer.low_s is None or answer.high_s is None:
        return f"x{answer.half_width_ratio:.2f} either way", ""
    return seconds(answer.seconds), seconds_range(answer.low_s, answer.high_s)


def _frontier_rows(plan: Plan) -> Table:
    rows = ((c.layout.label, seconds(c.seconds), gib(c.memory_bytes)) for c in plan.frontier)
    return table(
        "Time against memory: nothing is better in both", (Column("layout"), number("step"), number("memory")), rows
    )


def _knobs(plan: Plan, best: Candidate) -> Table:
    rows = (
        (c.knob, c.layout.label, share(c.seconds / best.seconds - 1, 1, signed=True),
         gib(c.memory_bytes - best.memory_bytes, signed=True), "" if c.fits else c.fit)
        for c in plan.sensitivity
    )  # fmt: skip
    return table(
        "One knob moved", (Column("knob"), Column("layout", 1), number("time"), number("memory"), Column("fit")), rows
    )


def _run(plan: Plan) -> Facts:
    """The run with its failures."""
    if plan.run is None:
        return Facts(())
    r = plan.run
    ends = (" (", share(r.goodput_low_share, 1), " to ", share(r.goodput_high_share, 1), ")")
    rows: list[tuple[str, Words]] = [
        (
            "checkpoint",
            (size(r.checkpoint_bytes), ", written in ", seconds(r.write_s), ", best every ", seconds(r.interval_s)),
        ),
        ("failures", (f"{r.failures_per_day:.2g} a day; useful ", share(r.goodput_share, 1), " of the time", *ends)),
        ("other topology", ("read again in ", seconds(r.reshard_s))),
        ("useful hour", (dollar(r.dollar_per_useful_hour), "; a failure costs ", dollar(r.dollar_per_failure))),
    ]
    if r.run_wall_s and r.run_dollar:
        rows.append(("whole run", (seconds(r.run_wall_s), ", ", dollar(r.run_dollar))))
    return Facts(tuple(rows), title=f"The run with its failures ({r.basis})")


def _sizes(plan: Plan) -> Table:
    price = plan.cluster.price_per_gpu_hour
    rows = []
    for gpus, c in plan.sizes:
        hours = gpus / c.tokens_per_s * TRILLION / HOUR_S
        rows.append(
            (count(gpus), seconds(c.seconds), count(hours), dollar(hours * price) if price else "", c.layout.label)
        )
    head = (number("GPUs"), number("step"), number("GPU hours"), number("price", 2), Column("layout", 1))
    return table("Time against cost of a trillion tokens", head, rows)


def _time(plan: Plan) -> Picture:
    names = [
        n for n, v in sorted(plan.best[0].parts.items(), key=lambda p: -p[1]) if v > SHOWN_SHARE * plan.best[0].seconds
    ]
    shade = {n: f"m{i % SHADES + 1}" for i, n in enumerate(names)}
    rows = []
    for c in plan.best:
        parts = [(shade[n], c.parts.get(n, 0.0), f"{part_name(n)}: {_s(c.parts.get(n, 0.0))}") for n in names]
        rest = c.seconds - sum(length for _, length, _ in parts)
        rows.append(Bar(c.layout.label, [*parts, ("a-other", max(rest, 0.0), "other")], (c.low_s, c.high_s), ""))
    drawn, height = bars(rows, _s)
    title = "Where a step goes"
    return Picture("time", title, picture(drawn, height, title), "The first layouts; black: 90% sure.", "",
                  tuple((shade[n], part_name(n)) for n in names))  # fmt: skip


def _memory(plan: Plan) -> Picture:
    kinds = in_order({n for c in plan.best for n, size in c.memory_parts.items() if size > 0.05 * GIB})
    rows = [
        Bar(c.layout.label, [(shade_of(n), c.memory_parts.get(n, 0.0) / GIB, f"{n}: {_g(c.memory_parts.get(n, 0.0))}") for n in kinds],
            behind=_g(c.memory_bytes))
        for c in plan.best
    ]  # fmt: skip
    limit = (plan.cluster.gpu.memory_bytes / GIB, "the card")
    drawn, height = bars(rows, _axis, limit)
    title = "What fills the fullest GPU"
    return Picture("memory", title, picture(drawn, height, title), "At the peak of a step.", "",
                  tuple((shade_of(n), n) for n in kinds))  # fmt: skip


def _frontier(plan: Plan) -> Picture | None:
    if len(plan.frontier) < 2:
        return None
    spots = [Spot(c.memory_bytes / GIB, c.seconds, c.layout.label) for c in plan.frontier]
    title = "Time against memory: nothing is better in both"
    drawn, height = scatter(spots, _axis, _s, "memory of the fullest GPU", joined=True, zero=False)
    return Picture("frontier", title, picture(drawn, height, title), "Lower and further left is better.")


def _s(seconds: float) -> str:
    return show(seconds, Unit.SECOND)


def _axis(gib: float) -> str:
    return f"{gib:g} GiB"


def _g(size_bytes: float) -> str:
    return f"{size_bytes / GIB:.1f} GiB"


def data(plan: Plan, explained: list[str] | None = None) -> dict[str, Any]:
    """The JSON contract."""
    found: dict[str, Any] = {
        "schema": "stallwise.plan.train/1",
        "model": plan.model.name,
        "parameters": plan.model.parameters().total,
        "cluster": plan.cluster.name,
        "gpus": plan.cluster.gpus,
        "seq": plan.workload.seq,
        "global_batch": plan.workload.global_batch,
        "considered": plan.considered,
        "feasible": plan.feasible,
        "search_s": plan.search_s,
        "best": [_candidate(c) for c in plan.best],
        "why_the_others_lost": plan.lost,
        "frontier": [_candidate(c) for c in plan.frontier],
        "sizes": [{"gpus": gpus, **_candidate(c)} for gpus, c in plan.sizes],
        "pipeline": asdict(plan.pipeline) if plan.pipeline else None,
        "sensitivity": [_change(c, plan.best[0]) for c in plan.sensitivity],
        "equal": plan.equal,
        "picked_ratio": plan.picked_ratio,
        "tight": plan.tight,
        "would_fit": plan.would_fit,
        "remarks": plan.remarks,
        "run": asdict(plan.run) if plan.run else None,
        "answers": [asdict(a) for a in plan.answers],
        "anchor": {**asdict(plan.anchor), "scale": plan.anchor.scale} if plan.anchor else None,
        "would_change": plan.would_change,
        "mfu_against": plan.best[0].mfu_against,
    }
    return found | ({"explain": explained} if explained else {})


def _candidate(c: Candidate) -> dict[str, Any]:
    return {**asdict(c), "label": c.layout.label}


def _change(c: Change, best: Candidate) -> dict[str, Any]:
    return {
        "knob": c.knob, "label": c.layout.label, "seconds": c.seconds, "slower_share": c.seconds / best.seconds - 1,
        "memory_bytes": c.memory_bytes, "fits": c.fits,
    }  # fmt: skip
