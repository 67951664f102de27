"""What per-rank times hide and tell without moments: waits that a timer counts as backward, and who waits least."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from stallwise.doctor.measures._operation_rows import Columns
from stallwise.evidence.catalog import workers as q
from stallwise.evidence.fact import Fact, Scope, Source
from stallwise.evidence.operations import COMMUNICATION, Work, numbered
from stallwise.late import np

if TYPE_CHECKING:
    from numpy.typing import NDArray

LOCK_STEP = 0.02  # of a step: ranks that meet in it differ by no more
UNLIKE = 0.05  # forwards of healthy ranks differ by one to three percent
FEWEST = 3
SIGMAS = 4.0
FAR = 0.7  # of the others' wait: who waits longer than this is one of them


def without_hidden_waits(columns: Columns, works: Sequence[int]) -> Columns:
    """Durations of the passes themselves, where gradients are exchanged inside of what a timer calls backward.

    In lock step the rank with the longest forward comes last and waits for nobody, so its ratio of backward to forward is that of
    the work itself. What the others' backward takes beyond it they wait.
    """
    work = np.array(works)[columns["label"]]
    if np.isin(work, [int(w) for w in COMMUNICATION]).any() or (columns["microbatch"] >= 0).any():
        return columns
    if len(np.unique(columns["stage"])) > 1:
        return columns
    (ranks, rank), (steps, step) = numbered(columns["replica"]), numbered(columns["step"])
    totals = [np.zeros((len(ranks), len(steps))) for _ in range(2)]
    for total, kind in zip(totals, (Work.FORWARD, Work.BACKWARD), strict=True):
        mine = work == kind
        np.add.at(total, (rank[mine], step[mine]), columns["duration_s"][mine])
    forward, backward = (t[:, (totals[0] > 0).all(axis=0) & (totals[1] > 0).all(axis=0)] for t in totals)
    if len(ranks) < 2 or not forward.shape[1]:
        return columns
    if _spread((forward + backward).mean(axis=1)) > LOCK_STEP or _spread(forward.mean(axis=1)) < UNLIKE:
        return columns
    last = int(forward.mean(axis=1).argmax())
    ratio = float(np.median(backward[last] / forward[last]))
    mine = np.flatnonzero(work == Work.BACKWARD)
    own = totals[0][rank[mine], step[mine]] * ratio
    duration = columns["duration_s"].copy()
    duration[mine] = np.where(own > 0, np.minimum(duration[mine], own), duration[mine])
    return {**columns, "duration_s": duration}


def _spread(values: np.ndarray[tuple[int, ...], np.dtype[np.float64]]) -> float:
    return float((values.max() - values.min()) / values.max())


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
