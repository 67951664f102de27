"""Your own rounds: best points by incident, each dimension over time, calibration, and where most is lost."""

from __future__ import annotations

from dataclasses import dataclass

from stallwise.drill.claims.weigh import STRONG
from stallwise.drill.journal import Played
from stallwise.drill.rubric import DIMENSIONS

LAST = 10  # rounds of the running mean
MOST_ROWS = 10
SIGNS = "·▄█"  # missing, pass, strong
GROUPS = ((0.0, 0.5), (0.5, 0.7), (0.7, 0.9), (0.9, 1.01))  # of how sure somebody was


@dataclass(frozen=True, slots=True)
class Leaderboard:
    """What the rounds add up to."""

    best: tuple[Played, ...]  # one a seed, most points first
    played: int
    mean_last: float
    mean_before: float | None  # of the rounds before those; None without any
    weakest: str  # the dimension that loses most
    chart: dict[str, str]  # one sign a round, oldest first
    calibration: tuple[tuple[str, int, float], ...]  # how sure, rounds, share of them that were right


def leaderboard(rounds: list[Played]) -> Leaderboard:
    """From rounds, oldest first."""
    by_seed: dict[int, Played] = {}
    for r in rounds:
        if r.seed not in by_seed or r.points > by_seed[r.seed].points:
            by_seed[r.seed] = r
    best = tuple(sorted(by_seed.values(), key=lambda r: -r.points))[:MOST_ROWS]
    last, before = rounds[-LAST:], rounds[:-LAST]
    lost = {d: sum(STRONG - r.dimensions.get(d, 0) for r in last) for d in DIMENSIONS}
    return Leaderboard(
        best,
        len(rounds),
        sum(r.points for r in last) / len(last) if last else 0.0,
        sum(r.points for r in before) / len(before) if before else None,
        max(lost, key=lambda d: lost[d]) if last else "",
        {d: "".join(SIGNS[r.dimensions.get(d, 0)] for r in rounds) for d in DIMENSIONS},
        tuple(_group(rounds, low, high) for low, high in GROUPS if any(_in(r, low, high) for r in rounds)),
    )


def _in(played: Played, low: float, high: float) -> bool:
    return played.sure is not None and low <= played.sure < high


def _group(rounds: list[Played], low: float, high: float) -> tuple[str, int, float]:
    mine = [r for r in rounds if _in(r, low, high)]
    return f"{low:.0%} to {min(high, 1.0):.0%}", len(mine), sum(r.right for r in mine) / len(mine)
