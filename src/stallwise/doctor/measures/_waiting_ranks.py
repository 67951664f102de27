"""Who waits least is waited for: per-rank time in a collective tells the late rank, without any other clock."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from stallwise.doctor.measures._operation_rows import Columns
from stallwise.evidence.catalog import workers as q
from stallwise.evidence.fact import Fact, Scope, Source
from stallwise.late import np
from stallwise.physics.sim.job.grid import numbered

if TYPE_CHECKING:
    from numpy.typing import NDArray

FEWEST = 3
SIGMAS = 4.0
FAR = 0.7  # of the others' wait: who waits longer than this is one of them


def least_waiting(columns: Columns, source: Source) -> Iterator[Fact]:
    """From rows of a collective by rank and step."""
    ranks, rank = numbered(columns["replica"])
    steps, step = numbered(columns["step"])
    waits = np.zeros((len(ranks), len(steps)))
    np.add.at(waits, (rank, step), columns["duration_s"])
    yield from late_by_wait(ranks, waits, source)


def late_by_wait(ranks: NDArray[np.int64], waits: NDArray[np.float64], source: Source) -> Iterator[Fact]:
    """(rank, step): the one that waits clearly less than all others."""
    mean = np.nanmean(waits, axis=1)
    if len(mean) < FEWEST or not np.isfinite(mean).all():
        return
    least = int(np.argmin(mean))
    others = np.delete(mean, least)
    middle = float(np.median(others))
    noise = 1.4826 * float(np.median(np.abs(others - middle)))
    if mean[least] > FAR * middle or middle - mean[least] < SIGMAS * noise:
        return
    scope = Scope(rank=int(ranks[least]))
    yield Fact(q.LEAST_WAIT, float(mean[least]), source, scope, samples=waits.size)
    yield Fact(
        q.OTHERS_WAIT, middle, source, scope, samples=waits.size, low=float(others.min()), high=float(others.max())
    )
