"""Serving plots as SVG: latency against throughput, KV cache and queue over time. Plain shapes, no scripts."""

from __future__ import annotations

from collections.abc import Sequence

WIDTH, HEIGHT, EDGE = 560, 240, 46
INK, LINE, MARK, SOFT = "#222", "#2b6cb0", "#c53030", "#ddd"


def latency_svg(
    points: Sequence[tuple[float, float]], marks: Sequence[tuple[float, float, str]], target_ms: float, x_title: str
) -> str:
    """Time per token (ms) over throughput, with named points and the target as a line."""
    every = [*points, *((x, y) for x, y, _ in marks)]
    if not every:
        return ""
    x1 = max(x for x, _ in every) or 1.0
    y1 = max(max(y for _, y in every), target_ms) * 1.05
    body = [_path([(_x(x, x1), _y(y, y1)) for x, y in sorted(points)], LINE)]
    body.append(
        f'<line x1="{EDGE}" x2="{WIDTH - 8}" y1="{_y(target_ms, y1):.1f}" y2="{_y(target_ms, y1):.1f}" '
        f'stroke="{MARK}" stroke-dasharray="4 3"/>'
    )
    body.append(_text(WIDTH - 10, _y(target_ms, y1) - 4, f"target {target_ms:.0f} ms", "end", MARK))
    for x, y, name in marks:
        body.append(f'<circle cx="{_x(x, x1):.1f}" cy="{_y(y, y1):.1f}" r="4" fill="{MARK}"/>')
        body.append(_text(_x(x, x1) + 6, _y(y, y1) - 6, name))
    return _frame(body, x_title, f"{x1:,.0f}", "ms a token", f"{y1:.0f}")


def over_time_svg(time_s: Sequence[float], kv_share: Sequence[float], waiting: Sequence[float]) -> str:
    """The cache as a share and the queue as a count, over seconds."""
    if not time_s:
        return ""
    x1, most = time_s[-1] or 1.0, max(waiting, default=0.0) or 1.0
    body = [
        _path([(_x(t, x1), _y(k, 1.0)) for t, k in zip(time_s, kv_share, strict=True)], LINE),
        _path([(_x(t, x1), _y(w, most)) for t, w in zip(time_s, waiting, strict=True)], MARK),
        _text(WIDTH - 10, 16, "KV cache in use", "end", LINE),
        _text(WIDTH - 10, 32, f"waiting requests (up to {max(waiting, default=0):.0f})", "end", MARK),
    ]
    return _frame(body, "seconds", f"{x1:.0f}", "", "100%")


def _x(value: float, top: float) -> float:
    return EDGE + (WIDTH - EDGE - 8) * value / top


def _y(value: float, top: float) -> float:
    return HEIGHT - EDGE - (HEIGHT - EDGE - 12) * min(value / top, 1.05)


def _path(points: Sequence[tuple[float, float]], color: str) -> str:
    return f'<polyline fill="none" stroke="{color}" stroke-width="2" points="{" ".join(f"{x:.1f},{y:.1f}" for x, y in points)}"/>'


def _text(x: float, y: float, text: str, anchor: str = "start", color: str = INK) -> str:
    from html import escape

    return f'<text x="{x:.1f}" y="{y:.1f}" font-size="11" fill="{color}" text-anchor="{anchor}">{escape(text)}</text>'


def _frame(body: list[str], x_title: str, x_top: str, y_title: str, y_top: str) -> str:
    axes = [
        f'<line x1="{EDGE}" x2="{WIDTH - 8}" y1="{HEIGHT - EDGE}" y2="{HEIGHT - EDGE}" stroke="{SOFT}"/>',
        f'<line x1="{EDGE}" x2="{EDGE}" y1="12" y2="{HEIGHT - EDGE}" stroke="{SOFT}"/>',
        _text(WIDTH - 8, HEIGHT - EDGE + 16, x_top, "end"),
        _text((WIDTH + EDGE) / 2, HEIGHT - EDGE + 30, x_title, "middle"),
        _text(EDGE - 4, 20, y_top, "end"),
        _text(4, 10, y_title),
    ]
    inside = "".join([*axes, *body])
    box = f'viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" role="img" font-family="sans-serif"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {box}>{inside}</svg>'
