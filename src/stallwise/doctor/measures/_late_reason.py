"""Why a rank is late: what it does in the time that its peers spend waiting for it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from stallwise.doctor.measures._rank_index import KINDS
from stallwise.evidence.fact import Table

Floats = NDArray[np.float64]
SAME_WORK = 0.05  # kernels counted within 5% of the peers' are the same work
UNIFORM = 0.15  # slow clocks stretch all kernels alike; more data stretches some
MIN_CALLS = 3

WORDS = {
    "input": "input: it waits for its own batch",
    "saving": "saving: it writes a checkpoint while the others go on",
    "gc": "garbage collection on its host",
    "compiling": "compiling: it builds code that the others already have",
    "copy": "copies between host and device",
    "host": "its host: the device has nothing to run while the host is busy elsewhere",
    "clocks": "slow kernels: the same kernels take longer there",
    "work": "more work: it runs more or larger kernels than the others",
    "compute": "compute",
}


@dataclass(frozen=True, slots=True)
class Why:
    """The leading kind of extra time, how much of the delay it explains, and a sentence."""

    kind: str
    share: float
    detail: str
    slowdown: float = float("nan")


def reason(
    tables: list[Table],
    late: NDArray[np.intp],
    fences: list[tuple[int, int]],
    delay_s: float,
    kernels: list[Table | None],
) -> Why | None:
    """Compares the late ranks' books with the middle of their peers, between two collectives that all share."""
    sums = np.array([[_sum(table, kind, fence) for kind in KINDS] for table, fence in zip(tables, fences, strict=True)])
    peers = np.setdiff1d(np.arange(len(tables)), late)
    if not len(peers) or delay_s <= 0:
        return None
    extra = np.median(sums[late], axis=0) - np.median(sums[peers], axis=0)
    kind, most = max(zip(KINDS, extra.tolist(), strict=True), key=lambda pair: pair[1])
    # What lies before the first shared collective is not in the books: such delay stays unexplained.
    share = max(most, 0.0) / max(delay_s, float(extra.sum()), 1e-12)
    slowdown = float("nan")
    detail = WORDS[kind]
    if kind == "compute":
        kind, slowdown, detail = _compute(tables, late, peers, fences, kernels)
    return Why(kind, min(share, 1.0), detail, slowdown)


def _sum(table: Table, kind: str, fence: tuple[int, int]) -> float:
    first, last = fence
    return float(np.asarray(table.columns[f"{kind}_s"][first + 1 : last + 1]).sum())


def _compute(
    tables: list[Table],
    late: NDArray[np.intp],
    peers: NDArray[np.intp],
    fences: list[tuple[int, int]],
    kernels: list[Table | None],
) -> tuple[str, float, str]:
    counts = np.array(
        [float(t.columns["kernels"][a + 1 : b + 1].sum()) for t, (a, b) in zip(tables, fences, strict=True)]
    )
    more = float(np.median(counts[late]) / max(np.median(counts[peers]), 1.0)) - 1.0
    ratios, weights = _ratios([kernels[i] for i in late], [kernels[i] for i in peers])
    if not len(ratios):
        return "compute", float("nan"), WORDS["compute"]
    middle = _weighted_quantile(ratios, weights, 0.5)
    spread = _weighted_quantile(ratios, weights, 0.75) - _weighted_quantile(ratios, weights, 0.25)
    if more > SAME_WORK:
        return "work", middle, f"{WORDS['work']} ({more:+.0%} kernels)"
    if middle > 1 + SAME_WORK and spread <= UNIFORM * middle:
        return "clocks", middle, f"{WORDS['clocks']} ({middle:.2f}x, all alike)"
    return "work", middle, f"{WORDS['work']} (some kernels take longer, most do not)"


def _ratios(late: list[Table | None], peers: list[Table | None]) -> tuple[Floats, Floats]:
    """Mean duration by kernel name over the peers' median, weighted by time."""
    ours, theirs = [_means(t) for t in late if t is not None], [_means(t) for t in peers if t is not None]
    if not ours or not theirs:
        return np.array([]), np.array([])
    ratios, weights = [], []
    for name, (mean, total, count) in ours[0].items():
        others = [m[name][0] for m in theirs if name in m and m[name][2] >= MIN_CALLS]
        if count >= MIN_CALLS and others and np.median(others) > 0:
            ratios.append(mean / float(np.median(others)))
            weights.append(total)
    return np.array(ratios), np.array(weights)


def _means(table: Table) -> dict[str, tuple[float, float, float]]:
    names, total, count = table.columns["name"], table.columns["total_s"], table.columns["count"]
    return {str(n): (float(t / c), float(t), float(c)) for n, t, c in zip(names, total, count, strict=True)}


def _weighted_quantile(values: Floats, weights: Floats, share: float) -> float:
    order = np.argsort(values)
    reach = np.cumsum(weights[order]) / weights.sum()
    return float(values[order][min(int(np.searchsorted(reach, share)), len(values) - 1)])
