"""Layers stacked on one another over time."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from stallwise.render.svg import WIDTH, area, line, text, ticks

LEFT, RIGHT, TOP, BOTTOM, HEIGHT = 92.0, 16.0, 16.0, 26.0, 280.0

Floats = NDArray[np.float64]


def areas(
    x: Floats, layers: Sequence[tuple[str, str, Floats]], shown: Callable[[float], str], clock: Callable[[float], str],
    limit: tuple[float, str] | None = None, *, steps: bool = False,
) -> tuple[list[str], float]:  # fmt: skip
    """`layers` are (class, hover title, height), the lowest first; `steps` holds each height to the next place."""
    if steps:
        x = np.repeat(x, 2)[1:]
        layers = [(kind, title, np.repeat(y, 2)[:-1]) for kind, title, y in layers]
    tops = np.cumsum([y for _, _, y in layers], axis=0)
    most = max(float(tops[-1].max()), limit[0] if limit else 0.0) or 1.0
    x0, x1 = float(x[0]), float(x[-1]) if float(x[-1]) > float(x[0]) else float(x[0]) + 1.0

    def across(value: float) -> float:
        return LEFT + (value - x0) / (x1 - x0) * (WIDTH - LEFT - RIGHT)

    def up(value: float) -> float:
        return HEIGHT - BOTTOM - value / most * (HEIGHT - TOP - BOTTOM)

    parts: list[str] = []
    for value in ticks(0.0, most, 5):
        parts += [
            line(LEFT, up(value), WIDTH - RIGHT, up(value)),
            text(LEFT - 8, up(value) + 4, shown(value), "axis", "end"),
        ]
    below = np.zeros(len(x))
    places = [across(float(v)) for v in x]
    for (kind, title, _), top in zip(layers, tops, strict=True):
        upper = [(p, up(float(v))) for p, v in zip(places, top, strict=True)]
        lower = [(p, up(float(v))) for p, v in zip(places, below, strict=True)]
        parts.append(area(upper, lower, kind, title))
        below = top
    if not steps:
        for value in ticks(x0, x1, 8):
            parts.append(text(across(value), HEIGHT - BOTTOM + 16, clock(value), "axis", "middle"))
    if limit:
        parts.append(line(LEFT, up(limit[0]), WIDTH - RIGHT, up(limit[0]), "after"))
        parts.append(text(WIDTH - RIGHT - 4, up(limit[0]) - 5, limit[1], "axis", "end"))
    return parts, HEIGHT
