"""Points in a box: named, joined where they belong to one curve, with a limit across."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from stallwise.render.svg import WIDTH, dot, line, path, text, ticks

LEFT, RIGHT, TOP, BOTTOM, HEIGHT = 92.0, 40.0, 18.0, 44.0, 300.0


@dataclass(frozen=True)
class Spot:
    """One point; `label` is written beside it, `title` only shown on hover."""

    x: float
    y: float
    title: str
    label: str = ""
    kind: str = "point"


def scatter(
    spots: Sequence[Spot], across: Callable[[float], str], up: Callable[[float], str], x_title: str, *,
    curve: Sequence[tuple[float, float]] = (), limit: tuple[float, str] | None = None, joined: bool = False,
    zero: bool = True,
) -> tuple[list[str], float]:  # fmt: skip
    """The parts and the height; both axes start at nothing, or with `zero` off where the points do."""
    points = [*((s.x, s.y) for s in spots), *curve]
    x1 = max(x for x, _ in points) * 1.04 or 1.0
    y1 = max([y for _, y in points] + ([limit[0]] if limit else [])) * 1.08 or 1.0

    x0, y0 = (0.0, 0.0) if zero else (min(x for x, _ in points) * 0.96, min(y for _, y in points) * 0.96)

    def at(x: float, y: float) -> tuple[float, float]:
        return LEFT + (x - x0) / (x1 - x0) * (WIDTH - LEFT - RIGHT), HEIGHT - BOTTOM - (y - y0) / (y1 - y0) * (
            HEIGHT - TOP - BOTTOM
        )

    parts: list[str] = []
    for value in ticks(y0, y1, 5):
        y = at(x0, value)[1]
        parts += [line(LEFT, y, WIDTH - RIGHT, y), text(LEFT - 8, y + 4, up(value), "axis", "end")]
    for value in ticks(x0, x1, 8):
        parts.append(text(at(value, y0)[0], HEIGHT - BOTTOM + 16, across(value), "axis", "middle"))
    parts.append(text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 8, x_title, "axis", "middle"))
    drawn = sorted(curve or ([(s.x, s.y) for s in spots] if joined else []))
    if len(drawn) > 1:
        parts.append(path([at(x, y) for x, y in drawn], "c1"))
    if limit:
        y = at(x0, limit[0])[1]
        parts += [line(LEFT, y, WIDTH - RIGHT, y, "after"), text(WIDTH - RIGHT - 4, y - 5, limit[1], "axis", "end")]
    for spot in spots:
        x, y = at(spot.x, spot.y)
        parts.append(dot(x, y, 5.5, spot.kind, spot.title))
        if spot.label:
            parts.append(text(x + 8, y - 7, spot.label, "t"))
    return parts, HEIGHT
