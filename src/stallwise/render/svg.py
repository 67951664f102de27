"""Small parts of SVG pictures: escaped, sized by a view box, coloured by class so that light and dark both work."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from html import escape

from markupsafe import Markup

WIDTH = 1040
TINIEST, HUGEST = 1e-290, 1e290  # of a step between ticks: beyond, arithmetic itself ends


def picture(parts: Iterable[str], height: float, label: str, *, width: float = WIDTH, kind: str = "") -> Markup:
    """A whole SVG that a screen reader takes as one image with this label."""
    body = "".join(parts)
    return Markup(
        f'<svg class="picture {escape(kind)}" viewBox="0 0 {width:g} {height:g}" role="img" aria-label="{escape(label)}">'
        f"{body}</svg>"
    )


def box(x: float, y: float, width: float, height: float, kind: str, title: str = "", extra: str = "") -> str:
    """A rectangle with a hover title."""
    tail = f"><title>{escape(title)}</title></rect>" if title else "/>"
    return (
        f'<rect class="{kind}" x="{x:.2f}" y="{y:.1f}" width="{max(width, 0.4):.2f}" height="{height:.1f}"{extra}{tail}'
    )


def text(x: float, y: float, words: str, kind: str = "t", anchor: str = "start") -> str:
    """Words at a place."""
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(words)}</text>'


def line(x1: float, y1: float, x2: float, y2: float, kind: str = "grid") -> str:
    """A straight line."""
    return f'<line class="{kind}" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>'


def path(points: Sequence[tuple[float, float]], kind: str) -> str:
    """A polyline; gaps where a value is not a finite number."""
    commands, pen = [], "M"
    for x, y in points:
        if not (math.isfinite(x) and math.isfinite(y)):
            pen = "M"
            continue
        commands.append(f"{pen}{x:.1f} {y:.1f}")
        pen = "L"
    return f'<path class="{kind}" d="{"".join(commands)}"/>'


def area(upper: Sequence[tuple[float, float]], lower: Sequence[tuple[float, float]], kind: str, title: str) -> str:
    """What lies between two lines, with a hover title."""
    there = "L".join(f"{x:.1f} {y:.1f}" for x, y in upper)
    back = "L".join(f"{x:.1f} {y:.1f}" for x, y in reversed(lower))
    return f'<path class="area {kind}" d="M{there}L{back}Z"><title>{escape(title)}</title></path>'


def dot(x: float, y: float, radius: float, kind: str, title: str) -> str:
    """A circle with a hover title."""
    return f'<circle class="{kind}" cx="{x:.1f}" cy="{y:.1f}" r="{radius:.1f}"><title>{escape(title)}</title></circle>'


def ticks(low: float, high: float, wanted: int = 5) -> list[float]:
    """Round numbers between two ends."""
    raw = (high - low) / wanted
    if not TINIEST < raw < HUGEST or raw < 1e-12 * max(abs(low), abs(high)):  # no numbers left in between
        return [low]
    size = 10.0 ** math.floor(math.log10(raw))
    step = next((size * m for m in (1, 2, 5) if size * m >= raw), 10 * size)
    first = math.ceil(low / step - 1e-9)
    return [k * step for k in range(first, math.floor(high / step + 1e-9) + 1)]


def short(name: str, most: int) -> str:
    """A long name cut in the middle, where it says least."""
    if len(name) <= most:
        return name
    half = (most - 1) // 2
    return f"{name[:half]}…{name[-(most - 1 - half) :]}"
