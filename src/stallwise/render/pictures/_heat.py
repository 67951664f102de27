"""A heat map: rows by columns, seconds as colour."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from stallwise.render.svg import WIDTH, box, picture, text
from stallwise.units import Unit, show

Floats = NDArray[np.float64]
LEFT, TOP = 170.0, 26.0
MOST_ROWS, MOST_COLUMNS = 64, 120  # beyond, neighbours share a cell, which shows the worst of them
TALLEST, HIGHEST = 22.0, 420.0  # of a row, and of all
FAINTEST = 0.06
SHADES, KEY = 8, 26.0  # of the key of colours
LINE = 16.0  # names of rows closer than this would touch


def heat(
    values: Floats, names: Sequence[str], titles: Sequence[str], axis: str, what: str, *,
    shown: Floats | None = None, kinds: Sequence[str] = (), framed: int = -1,
) -> Markup:  # fmt: skip
    """`kinds`: a colour for each row, which then has a scale of its own; `framed`: a column that stands out."""
    down, across = -(-len(names) // MOST_ROWS), -(-len(titles) // MOST_COLUMNS)
    rows, columns = range(0, len(names), down), range(0, len(titles), across)
    width, height = (WIDTH - LEFT - 8) / len(columns), max(6.0, min(TALLEST, HIGHEST / len(rows)))
    bottom = TOP + len(rows) * height
    parts = [text(LEFT - 20, TOP - 8, axis, "axis", "end")]
    for j, column in enumerate(columns):
        if j % max(1, len(columns) // 12) == 0:
            parts.append(text(LEFT + (j + 0.5) * width, TOP - 8, titles[column], "axis", "middle"))
        if column <= framed < column + across:
            parts.append(box(LEFT + j * width, TOP - 3, width, bottom - TOP + 4, "frame"))
    parts += _row_names(values, names, list(rows), height, all_of_them=bool(kinds))
    for i, row in enumerate(rows):
        most = _most(values[row : row + down] if kinds else values)
        for j, column in enumerate(columns):
            part = values[row : row + down, column : column + across]
            if not np.isfinite(part).any():
                continue
            worst = np.unravel_index(int(np.nanargmax(part)), part.shape)
            seconds, here = float(part[worst]), (row + int(worst[0]), column + int(worst[1]))
            value = "" if shown is None else f"{show(float(shown[here]), Unit.SECOND)}, "
            title = f"{names[here[0]]}, {axis} {titles[here[1]]}: {value}{show(max(seconds, 0.0), Unit.SECOND)} {what}"
            kind = kinds[row] if kinds else "a-queue"
            parts.append(
                box(LEFT + j * width, TOP + i * height, width - 0.4, height - 0.6, kind, title, _shade(seconds, most))
            )
    key = [] if kinds else _key(bottom, _most(values), what)
    return picture([*parts, *key], bottom + (34 if key else 6), f"Heat map of {len(names)} by {len(titles)}, {what}")


def _most(values: Floats) -> float:
    return float(np.nanmax(values)) if np.isfinite(values).any() else 0.0


def _shade(seconds: float, most: float) -> str:
    return f' fill-opacity="{max(FAINTEST, seconds / most if most > 0 else 0.0):.2f}"'


def _row_names(values: Floats, names: Sequence[str], rows: list[int], height: float, *, all_of_them: bool) -> list[str]:
    """Names of some rows, and of the darkest."""
    step, down = max(1, len(rows) // 16), rows[1] - rows[0] if len(rows) > 1 else 1
    darkest = -1 if all_of_them else int(np.argmax(np.where(np.isfinite(values), values, 0.0).mean(axis=1)))
    found = []
    for i, row in enumerate(rows):
        here = row <= darkest < row + down
        near = darkest >= 0 and abs(i - darkest // down) * height < LINE
        if here or (i % step == 0 and not near):
            found.append(
                text(
                    LEFT - 8, TOP + (i + 0.75) * height, names[darkest if here else row], "t" if here else "axis", "end"
                )
            )
    return found


def _key(top: float, most: float, what: str) -> list[str]:
    """How dark what is."""
    parts = [text(LEFT - 8, top + 22, "0 s", "axis", "end")]
    parts += [
        box(LEFT + i * KEY, top + 12, KEY - 0.4, 12.0, "a-queue", "", _shade(most * i / (SHADES - 1), most))
        for i in range(SHADES)
    ]
    return [*parts, text(LEFT + SHADES * KEY + 6, top + 22, f"{show(most, Unit.SECOND)} {what}", "axis")]
