"""Several runs: how the measure moved, where its level changed, and what else changed there."""

from __future__ import annotations

from typing import Any

from stallwise.doctor.findings.comparison import Change
from stallwise.doctor.findings.trend import SCHEMA, Shift, Trend
from stallwise.render.blocks import (
    Block,
    Column,
    Document,
    Number,
    Picture,
    Series,
    Verdict,
    number,
    share,
    steps,
    table,
)
from stallwise.render.blocks import document as filled
from stallwise.render.documents.comparison import data as comparison_data
from stallwise.render.svg import WIDTH, dot, line, path, picture, short, text, ticks
from stallwise.units import Unit, show

MOST_REASONS = 4
FEWEST_RUNS = 3  # that a change can stand out of
LEFT, RIGHT, TOP, BOTTOM, HEIGHT = 92.0, 24.0, 24.0, 46.0, 300.0
MOST_NAMED = 12  # runs with their name below them


def document(trend: Trend, *, deep: bool = False, subject: str = "", inputs: tuple[str, ...] = ()) -> Document:
    """The sentence, then the runs."""
    return filled(_verdict(trend), *blocks(trend, deep=deep), verb="compare", subject=subject, inputs=inputs)


def blocks(trend: Trend, name: str = "", *, deep: bool = False) -> tuple[Block, ...]:
    """The line over the runs, each run, and why it changed where it did; `name` heads it among several."""
    values = [r.value for r in trend.runs if r.value is not None]
    changed = frozenset(s.at for s in trend.shifts)
    rows = (
        (">" if i in changed else "", r.when[:16].replace("T", " "), r.name,
         Number(r.value, trend.unit) if r.value is not None else "-", r.cause or r.state)
        for i, r in enumerate(trend.runs)
    )  # fmt: skip
    head = (
        Column("new level", 3),
        Column("when", 2),
        Column("run"),
        number(trend.metric or "measure"),
        Column("what stalls", 1),
    )
    plot = _plot(trend, name) if deep else None
    over_runs = Series(
        trend.metric, tuple(values), trend.unit, low=Number(min(values), trend.unit), high=Number(max(values), trend.unit)
    ) if len(values) > 1 and not deep else None  # fmt: skip
    found: tuple[Block | None, ...] = (
        over_runs,
        plot,
        *(steps(f"What changed at {trend.runs[s.at].name}", reasons(s)) for s in trend.shifts),
        table(name, head, rows, best=changed),
    )
    return tuple(block for block in found if block is not None)


def _verdict(trend: Trend) -> Verdict:
    last = trend.shifts[-1] if trend.shifts else None
    tone = "unclear" if not trend.metric else "bad" if last and last.ratio > 1 else "good"
    noise = ("runs of one level differ by ", share(trend.noise_share, 1)) if trend.metric else ""
    return Verdict(trend_line(trend), tone=tone, tail=noise)


def trend_line(trend: Trend) -> str:
    """The answer in a sentence."""
    measured = sum(r.value is not None for r in trend.runs)
    if not trend.metric:
        return f"The {len(trend.runs)} runs share no measure of speed."
    if not trend.shifts:
        few = " (three runs at least are needed)" if measured < FEWEST_RUNS else ""
        return f"No change in {trend.metric} over {measured} runs that stands out of their own noise{few}."
    return " ".join(f"{shift_line(s, trend)}." for s in trend.shifts)


def shift_line(shift: Shift, trend: Trend) -> str:
    """One change, with its place."""
    word = "slower" if shift.ratio > 1 else "faster"
    by = shift.ratio - 1.0 if shift.ratio > 1 else 1.0 / shift.ratio - 1.0
    before, after = show(shift.before, trend.unit), show(shift.after, trend.unit)
    return f"{by:.1%} {word} from {trend.runs[shift.at].name} on: {trend.metric} {before} before, {after} since"


def reasons(shift: Shift) -> list[str]:
    """What else changed between the runs on both sides."""
    if shift.why is None:
        return []
    moved = shift.why.regressions if shift.ratio > 1 else shift.why.improvements
    rows = [_change_text(c) for c in moved[:MOST_REASONS]]
    rows += [f"set up differently: {c.what} {c.good} -> {c.bad}" for c in shift.why.setup[:MOST_REASONS]]
    rows += [f"new: {cause}" for cause in shift.why.appeared] + [f"gone: {cause}" for cause in shift.why.vanished]
    return rows


def _change_text(change: Change) -> str:
    delta = f" ({'+' if change.delta_s > 0 else '-'}{show(abs(change.delta_s), Unit.SECOND)})" if change.delta_s else ""
    return f"{change.what} {change.good} -> {change.bad}{delta}{f' [{change.cause}]' if change.cause else ''}"


def _plot(trend: Trend, name: str) -> Picture | None:
    points = [(i, r.value) for i, r in enumerate(trend.runs) if r.value is not None]
    if len(points) < 2:
        return None
    most = max(v for _, v in points) * 1.1
    wide = max(len(trend.runs) - 1, 1)

    def at(run: float, value: float) -> tuple[float, float]:
        return LEFT + run / wide * (WIDTH - LEFT - RIGHT), HEIGHT - BOTTOM - value / most * (HEIGHT - TOP - BOTTOM)

    parts = []
    for value in ticks(0.0, most, 5):
        y = at(0, value)[1]
        parts += [line(LEFT, y, WIDTH - RIGHT, y), text(LEFT - 8, y + 4, show(value, trend.unit), "axis", "end")]
    for shift in trend.shifts:
        x = at(shift.at - 0.5, 0)[0]
        parts += [line(x, TOP - 6, x, HEIGHT - BOTTOM, "after"), text(x + 6, TOP + 4, f"{shift.ratio - 1:+.0%}", "t")]
    edges = [0, *(s.at for s in trend.shifts), len(trend.runs)]
    for a, b in zip(edges, edges[1:], strict=False):
        inside = [v for i, v in points if a <= i < b]
        if inside:
            level = sum(inside) / len(inside)
            parts.append(
                line(*at(a - 0.3 if a else a, level), *at(b - 0.7 if b < len(trend.runs) else b - 1, level), "roof")
            )
    parts.append(path([at(i, v) for i, v in points], "c1"))
    for i, v in points:
        parts.append(dot(*at(i, v), 5.0, "point", f"{trend.runs[i].name}: {show(v, trend.unit)}"))
    every = max(1, -(-len(trend.runs) // MOST_NAMED))
    for i in range(0, len(trend.runs), every):
        anchor = "start" if i == 0 else "end" if i == len(trend.runs) - 1 else "middle"
        parts.append(text(at(i, 0)[0], HEIGHT - BOTTOM + 18, short(trend.runs[i].name, 16), "axis", anchor))
    title = f"{name or trend.metric} over {len(trend.runs)} runs"
    better = "Higher is better." if trend.rate else "Lower is better."
    caption = f"Black: the level between changes. Dashed: where it changed. {better}"
    return Picture("trend", title, picture(parts, HEIGHT, title), caption)


def data(trend: Trend) -> dict[str, Any]:
    """The JSON contract."""
    return {
        "schema": SCHEMA,
        "metric": trend.metric,
        "unit": trend.unit.value,
        "more_is_better": trend.rate,
        "noise_share": trend.noise_share,
        "runs": [
            {"name": r.name, "when": r.when, "value": r.value, "state": r.state, "cause": r.cause} for r in trend.runs
        ],
        "changes": [
            {
                "at": s.at,
                "between": [trend.runs[s.at - 1].name, trend.runs[s.at].name],
                "before": s.before,
                "after": s.after,
                "slower_by": s.ratio - 1.0,
                "times_the_noise": s.against,
                "comparison": comparison_data(s.why) if s.why else None,
            }
            for s in trend.shifts
        ],
    }
