"""How much of a folder is held at once: facts and messages of every file, and of long courses as many points as there is room for."""

from __future__ import annotations

from dataclasses import dataclass, replace

from stallwise.evidence.catalog.serving import ENGINE_SAMPLES
from stallwise.evidence.evidence import Item
from stallwise.evidence.fact import Note, Series, Source, Table
from stallwise.evidence.gpu_load import SAMPLES as GPU_SAMPLES

ROOM_POINTS = 16 << 20  # numbers of all courses together: 128 MiB each for values and places
LEFT_POINTS = 1 << 11  # of a course for which there is no room: its level, trend and noise are still seen
SAMPLES = (ENGINE_SAMPLES, GPU_SAMPLES)  # tables of moments: every other row tells the same


@dataclass(slots=True)
class Budget:
    """Room for points, taken by the files in their order."""

    left_points: int = ROOM_POINTS

    def held(self, items: list[Item], file: str) -> list[Item]:
        """All items; where no room is left, courses with evenly fewer points, and a note that says so."""
        thinned = 0
        for at, item in enumerate(items):
            points = _points(item)
            if points > self.left_points and points > LEFT_POINTS:
                items[at] = item = _thinned(item)
                thinned, points = thinned + 1, _points(item)
            self.left_points -= points
        if thinned:
            text = f"of {thinned} long courses only about {LEFT_POINTS:,} points each are kept: the files hold more than fit"
            items.append(Note(text, Source(file), lost=True))
        return items


def _points(item: Item) -> int:
    if isinstance(item, Series):
        return len(item.x)
    return len(item) * len(item.columns) if isinstance(item, Table) and item.kind in SAMPLES else 0


def _thinned(item: Item) -> Item:
    if isinstance(item, Series):
        every = -(-len(item.x) // LEFT_POINTS)
        return replace(item, x=item.x[::every].copy(), values=item.values[::every].copy())
    assert isinstance(item, Table)
    every = -(-len(item) * len(item.columns) // LEFT_POINTS)
    return replace(item, columns={name: column[::every].copy() for name, column in item.columns.items()})
