"""Several runs as a page: the plot with its levels, the runs, and what changed where."""

from __future__ import annotations

from collections.abc import Sequence

from stallwise.doctor.findings.trend import Trend
from stallwise.render.answers import Block, Figure, Grid, Rows, Text, Verdict, page
from stallwise.render.svg import WIDTH, dot, line, path, picture, short, text, ticks
from stallwise.render.trend import reasons, shift_line, trend_line, trend_text
from stallwise.units import show

LEFT, RIGHT, TOP, BOTTOM, HEIGHT = 92.0, 24.0, 24.0, 46.0, 300.0
MOST_NAMED = 12  # runs with their name below them


def to_html(trend: Trend, *, verb: str, subject: str, inputs: Sequence[str] = ()) -> str:
    """The whole page."""
    return page(_verdict(trend), blocks_of(trend), verb=verb, subject=subject, inputs=inputs)


def blocks_of(trend: Trend, name: str = "") -> list[Block | None]:
    """The plot, the runs and the reasons; `name` tells several trends of one page apart."""
    why: list[Block | None] = [Rows(f"What changed at {trend.runs[s.at].name}", reasons(s)) for s in trend.shifts]
    return [
        _plot(trend, name),
        *why,
        _runs(trend, name),
        Text(f"As text{f': {name}' if name else ''}", trend_text(trend)),
    ]


def _verdict(trend: Trend) -> Verdict:
    last = trend.shifts[-1] if trend.shifts else None
    tone = "unclear" if not trend.metric else "bad" if last and last.ratio > 1 else "good"
    noise = f"runs of one level differ by {trend.noise_share:.1%}" if trend.metric else ""
    if last is None:
        return Verdict(trend_line(trend), "", "", tone, noise)
    why = "; ".join(reasons(last)[:3])
    return Verdict(shift_line(last, trend), f"{why}." if why else "", "", tone, noise)


def _plot(trend: Trend, name: str) -> Figure | None:
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
    return Figure("trend", title, picture(parts, HEIGHT, title), caption)


def _runs(trend: Trend, name: str) -> Grid:
    rows = [
        (
            r.name,
            r.when[:16].replace("T", " "),
            show(r.value, trend.unit) if r.value is not None else "-",
            r.cause or r.state,
        )
        for r in trend.runs
    ]
    changed = frozenset(s.at for s in trend.shifts)
    return Grid(f"Runs{f' of {name}' if name else ''}", ("run", "when", trend.metric or "measure", "what stalls"), rows,
                frozenset({2}), best=changed, note="Bold: the first run after a change.")  # fmt: skip
