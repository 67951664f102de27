"""Lines over steps or seconds, in one panel."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from stallwise.render.svg import WIDTH, line, path, text, ticks
from stallwise.units import Unit, show

LEFT, RIGHT, TOP, BOTTOM = 92.0, 16.0, 24.0, 22.0
PANEL = 150.0
MOST_POINTS = 600
MOST_NAMED = 6


@dataclass(frozen=True)
class Curve:
    """One line of a panel."""

    word: str
    x: NDArray[np.float64]
    y: NDArray[np.float64]
    kind: str = "c1"


def panel(
    curves: Sequence[Curve], title: str, unit: Unit, over: str, top: float = 0.0, *, zero: bool = True
) -> list[str]:
    """A panel PANEL high, starting at `top`."""
    # Clocks that count from an epoch say nothing; time runs from the first sample.
    origin = min((float(c.x[0]) for c in curves if len(c.x)), default=0.0) if over == "time_s" else 0.0
    curves = [Curve(c.word, c.x - origin, c.y, c.kind) for c in curves]
    xs = np.concatenate([c.x for c in curves])
    ys = np.concatenate([c.y for c in curves])
    ys = ys[np.isfinite(ys)]
    if not len(ys) or not len(xs):
        return []
    low, high = (0.0 if zero else float(ys.min())), float(ys.max())
    if high <= low:
        high = low + (abs(low) or 1.0)
    x0, x1 = float(np.nanmin(xs)), float(np.nanmax(xs))
    x1 = x1 if x1 > x0 else x0 + 1.0
    bottom = top + PANEL - BOTTOM

    def at(x: float, y: float) -> tuple[float, float]:
        px = LEFT + (x - x0) / (x1 - x0) * (WIDTH - LEFT - RIGHT)
        return px, bottom - (y - low) / (high - low) * (bottom - top - TOP)

    parts = [text(LEFT, top + 14, title, "t")]
    if len(curves) > 1 and len({c.word for c in curves}) == len(curves) <= MOST_NAMED:
        right = WIDTH - RIGHT
        for curve in reversed(curves):  # each name in the colour of its line
            parts.append(text(right, top + 14, curve.word or "all", f"t l{curve.kind}", "end"))
            right -= 8.0 * len(curve.word) + 14
    for value in ticks(low, high, 3):
        y = at(x0, value)[1]
        parts += [line(LEFT, y, WIDTH - RIGHT, y), text(LEFT - 8, y + 4, show(value, unit), "axis", "end")]
    scale, tail = clock(x1 - x0) if over == "time_s" else (1.0, "")
    for value in ticks(x0 / scale, x1 / scale, 8):
        parts.append(text(at(value * scale, low)[0], bottom + 15, f"{value:g}{tail}", "axis", "middle"))
    for curve in curves:
        keep = np.unique(np.linspace(0, len(curve.x) - 1, min(len(curve.x), MOST_POINTS)).astype(int))
        parts.append(path([at(float(curve.x[i]), float(curve.y[i])) for i in keep], curve.kind))
    return parts


def clock(span_s: float) -> tuple[float, str]:
    """One unit for the whole axis: its seconds, and what stands behind its numbers."""
    for scale, tail, least in ((3600.0, " h", 7200.0), (60.0, " min", 120.0), (1.0, " s", 1.0)):
        if span_s >= least:
            return scale, tail
    return 1e-3, " ms"
