"""Plots for a terminal: a line over time in one row, a scatter in a box."""

from __future__ import annotations

from collections.abc import Sequence

BARS = " ▁▂▃▄▅▆▇█"


def sparkline(values: Sequence[float], width: int = 60, most: float | None = None) -> str:
    """One row of bars; each column the largest of its values, so that spikes are seen."""
    if not values:
        return ""
    top = most if most is not None else max(values)
    columns = min(width, len(values))
    cells = [max(values[i * len(values) // columns : (i + 1) * len(values) // columns or None]) for i in range(columns)]
    return "".join(BARS[min(8, max(0, round(8 * v / top)))] if top > 0 else BARS[0] for v in cells)


def scatter(
    points: Sequence[tuple[float, float]], marks: Sequence[str], *, width: int = 56, height: int = 12
) -> list[str]:
    """Rows of a box, the highest first; later points overwrite earlier ones."""
    if not points:
        return []
    xs, ys = [p[0] for p in points], [p[1] for p in points]
    x0, x1, y0, y1 = min(xs), max(xs), min(ys), max(ys)
    grid = [[" "] * width for _ in range(height)]
    for (x, y), mark in zip(points, marks, strict=True):
        column = round((x - x0) / (x1 - x0 or 1) * (width - 1))
        row = round((y - y0) / (y1 - y0 or 1) * (height - 1))
        grid[height - 1 - row][column] = mark
    return ["".join(row).rstrip() for row in grid]
