"""Horizontal bars made of parts, one a row, with a mark where a limit is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from stallwise.render.svg import WIDTH, box, line, short, text, ticks

ROW, BAR, TOP, RIGHT = 32.0, 20.0, 26.0, 110.0
LETTER = 7.2  # about, of a label
MOST_LEFT = 330.0


@dataclass(frozen=True)
class Bar:
    """One row: its parts from left to right, an interval around its end, and words behind it."""

    label: str
    parts: Sequence[tuple[str, float, str]]  # class, length, hover title
    interval: tuple[float, float] | None = None
    behind: str = ""
    marks: Sequence[float] = field(default_factory=tuple)


def bars(
    rows: Sequence[Bar], shown: Callable[[float], str], limit: tuple[float, str] | None = None
) -> tuple[list[str], float]:
    """The parts of the picture and its height."""
    left = min(MOST_LEFT, 16 + LETTER * max(len(r.label) for r in rows))
    ends = [sum(length for _, length, _ in r.parts) for r in rows]
    ends += [r.interval[1] for r in rows if r.interval] + [m for r in rows for m in r.marks]
    most = max([*ends, limit[0] if limit else 0.0]) or 1.0

    def at(value: float) -> float:
        return left + value / most * (WIDTH - left - RIGHT)

    bottom = TOP + ROW * len(rows)
    parts: list[str] = []
    for value in ticks(0.0, most, 6):
        parts += [
            line(at(value), TOP - 4, at(value), bottom),
            text(at(value), TOP - 10, shown(value), "axis", "middle"),
        ]
    for number, row in enumerate(rows):
        y = TOP + number * ROW + (ROW - BAR) / 2
        parts.append(text(left - 10, y + 14, short(row.label, int((left - 14) / LETTER)), "t", "end"))
        end = 0.0
        for kind, length, title in row.parts:
            if length > 0:
                parts.append(box(at(end), y, at(end + length) - at(end), BAR, kind, title))
                end += length
        if row.interval:
            low, high = row.interval
            parts += [line(at(low), y + BAR / 2, at(high), y + BAR / 2, "roof")]
            parts += [line(at(x), y + 4, at(x), y + BAR - 4, "roof") for x in row.interval]
        if row.behind:
            parts.append(text(at(max([end, *(row.interval or ())])) + 8, y + 14, row.behind, "axis"))
    if limit:
        parts.append(line(at(limit[0]), TOP - 4, at(limit[0]), bottom, "after"))
        parts.append(text(at(limit[0]) - 6, bottom + 14, limit[1], "axis", "end"))
    return parts, bottom + (22 if limit else 6)
