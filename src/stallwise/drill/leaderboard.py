"""Your own leaderboard: best points by incident, the mean of the last rounds, and where points are lost most."""

from __future__ import annotations

from dataclasses import dataclass

from stallwise.drill.journal import Played
from stallwise.drill.scoring import CALIBRATION, COMMUNICATION, EFFICIENCY, FALSIFIER, FIXES, NOT_FIRST, NUMBER, SECOND

LAST = 10  # rounds of the running mean
MOST_ROWS = 10
WHOLE = {
    "efficiency": EFFICIENCY,
    "calibration": CALIBRATION,
    "correctness": NUMBER + SECOND + FIXES + FALSIFIER + NOT_FIRST,
    "communication": COMMUNICATION,
}


@dataclass(frozen=True, slots=True)
class Leaderboard:
    """What the rounds add up to."""

    best: tuple[Played, ...]  # one a seed, most points first
    played: int
    mean_last: float
    mean_before: float | None  # of the rounds before those; None without any
    weakest: str  # the heading that loses the largest share of its points


def leaderboard(rounds: list[Played]) -> Leaderboard:
    """From rounds, oldest first."""
    by_seed: dict[int, Played] = {}
    for r in rounds:
        if r.seed not in by_seed or r.points > by_seed[r.seed].points:
            by_seed[r.seed] = r
    best = tuple(sorted(by_seed.values(), key=lambda r: -r.points))[:MOST_ROWS]
    last, before = rounds[-LAST:], rounds[:-LAST]
    lost = {h: sum(of - r.headings.get(h, 0.0) for r in last) / of for h, of in WHOLE.items()}
    return Leaderboard(
        best,
        len(rounds),
        sum(r.points for r in last) / len(last) if last else 0.0,
        sum(r.points for r in before) / len(before) if before else None,
        max(lost, key=lambda h: lost[h]) if last else "",
    )
