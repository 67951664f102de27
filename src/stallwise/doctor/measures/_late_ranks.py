"""Who is late, how often and what it costs: the job replayed without a rank's delay.

A collective begins to move bytes when the last rank has come. Without the delay of a set of ranks it would begin when
the last of the others has come; what the others then save is only what they really spent waiting with nothing else to
run, so a wait that hides behind compute costs nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
NOISE_IN_ERRORS = 2.0  # a lead below twice the clock's error is no lead
MOST_OF_THE_COST = 0.8  # the smallest set that explains so much of the best set's cost is the answer
LARGEST_SHARE = 4  # at most a quarter of the ranks can be "the late ones"; beyond that the job is uneven, not held up
MOST_RANKS = 64
SIZES = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)  # of sets tried; nodes have 4, 8 or 16 GPUs


@dataclass(frozen=True, slots=True, eq=False)
class Late:
    """A set of ranks (places, not numbers) and what the job would save without its delay."""

    members: NDArray[np.intp]
    saved: Floats  # seconds by collective
    possible: Floats  # what any equally large set could save, chosen anew at each collective

    @property
    def cost_s(self) -> float:
        """Over the whole window."""
        return float(self.saved.sum())

    @property
    def explains(self) -> float:
        """1 when it is always these ranks, 1/n when lateness goes round."""
        total = float(self.possible.sum())
        return float(self.saved.sum()) / total if total > 0 else 0.0


def waits(arrival: Floats, end: Floats) -> Floats:
    """How long each rank waited for the last one, never longer than it was in the collective."""
    last = np.nanmax(arrival, axis=1, keepdims=True)
    waited: Floats = np.clip(last - arrival, 0.0, np.maximum(end - arrival, 0.0))
    return waited


def even_gain(arrival: Floats, exposed: Floats, error_s: float) -> Floats:
    """By collective: what is saved when nobody comes later than the middle rank."""
    lead = _max(arrival) - _middle(arrival)
    return _counted(lead, exposed, error_s)


def latest_set(arrival: Floats, exposed: Floats, error_s: float) -> Late | None:
    """The ranks whose delay costs most; None when nobody costs anything."""
    ranks = arrival.shape[1]
    lead = arrival - _middle(arrival)[:, None]
    order = np.argsort(-np.nansum(np.maximum(lead, 0.0), axis=0), kind="stable")
    most = min(max(ranks // LARGEST_SHARE, 1), MOST_RANKS)
    # A rank that is late once, but by much, need not lead the sums: it comes first among the sets of one.
    sets = [np.array([_costliest_alone(arrival, exposed, error_s)])]
    sets += [order[:size] for size in SIZES if size < most] + [order[:most]]
    costs = [float(_saved(arrival, exposed, members, error_s).sum()) for members in sets]
    if max(costs) <= 0:
        return None
    members = next(s for s, cost in zip(sets, costs, strict=True) if cost >= MOST_OF_THE_COST * max(costs))
    saved = _saved(arrival, exposed, members, error_s)
    return Late(np.sort(members), saved, _possible(arrival, exposed, len(members), error_s))


def _costliest_alone(arrival: Floats, exposed: Floats, error_s: float) -> int:
    filled = np.where(np.isfinite(arrival), arrival, -np.inf)
    last = np.argmax(filled, axis=1)
    counted = _possible(arrival, exposed, 1, error_s)
    return int(np.argmax(np.bincount(last, weights=counted, minlength=arrival.shape[1])))


def _saved(arrival: Floats, exposed: Floats, members: NDArray[np.intp], error_s: float) -> Floats:
    others = np.ones(arrival.shape[1], bool)
    others[members] = False
    if not others.any():
        return np.zeros(len(arrival))
    last = _max(arrival)
    return _counted(last - _max(arrival[:, others]), exposed[:, others], error_s)


def _possible(arrival: Floats, exposed: Floats, size: int, error_s: float) -> Floats:
    ordered = np.sort(np.where(np.isfinite(arrival), arrival, -np.inf), axis=1)
    left = ordered[:, -(size + 1)] if arrival.shape[1] > size else ordered[:, 0]
    return _counted(ordered[:, -1] - left, exposed, error_s)


def _counted(lead: Floats, exposed: Floats, error_s: float) -> Floats:
    """A lead counts beyond the clock's error, and as far as the waiting ranks had nothing else to do."""
    real = np.where(np.isfinite(lead) & (lead > NOISE_IN_ERRORS * error_s), lead, 0.0)
    shown = np.minimum(real[:, None], np.where(np.isfinite(exposed), exposed, np.nan))
    out = np.zeros(len(lead))
    some = np.isfinite(shown).any(axis=1) & (real > 0)
    if some.any():
        out[some] = _middle(shown[some])
    return out


def _middle(values: Floats) -> Floats:
    """Row medians; numpy's own that heed NaN are ten times slower, and rows are nearly always whole."""
    out = np.median(values, axis=1)
    gaps = ~np.isfinite(out)
    if gaps.any():
        out[gaps] = np.nanmedian(values[gaps], axis=1)
    middle: Floats = out
    return middle


def _max(values: Floats) -> Floats:
    filled = np.where(np.isfinite(values), values, -np.inf).max(axis=1, initial=-np.inf)
    return np.where(np.isfinite(filled), filled, np.nan)
