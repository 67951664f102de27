"""How far measured gains lie from replayed ones, by kind of change: the room that a promise must leave.

`measured/gain_ratios.csv` holds what a fix won over what the replay of the same run's trace had said, one row for each workload
and fix (bench/gains.py writes it). The doubt of a change is a normal one of the logarithms: centre and spread of its own
rows, drawn towards those of all changes where its rows are few. From few rows neither is known well, so that the next one lies
where Student's distribution has it. No workload has a constant of its own.

A file of the user's own trials (the variable STALLWISE_GAINS, written by `stallwise try --learn`) adds its rows. A fix that lost time
has a ratio of 0 or less: it has no logarithm and moves no range, and the promise of its change says that it can be negative.
"""

from __future__ import annotations

import csv
import os
from collections.abc import Iterable
from functools import cache
from math import exp, isfinite, log, sqrt
from pathlib import Path
from typing import NamedTuple

LOCAL = "STALLWISE_GAINS"  # a file of the user's own trials
COLUMNS = ("change", "workload", "recorded", "ratio")

PRIOR_ROWS = 4  # what all changes know weighs as much as this many rows of the change itself
FARTHEST = log(
    2.0
)  # rows further off had another reason (a host that changed its pace, a disk): they count as this far
# Rows this far off, beyond any promise that may be given, tell of another fix than was replayed: a loop written anew, a compiler that
# also takes other convolutions.
ANOTHER_FIX = log(2.5)
DEVIATIONS = 1.44  # either side: 85% of a normal whose centre and spread are known
WIDEST_RATIO = 1.99  # of the ends of a promise: one wider than twofold helps nobody
WIDEST = log(WIDEST_RATIO)


class Ratio(NamedTuple):
    """What one fix won over what its replay said."""

    change: str
    workload: str
    ratio: float


@cache
def rows() -> tuple[Ratio, ...]:
    """All that was measured."""
    text = (Path(__file__).parent / "measured" / "gain_ratios.csv").read_text(encoding="utf-8")
    local = Path(os.environ.get(LOCAL, ""))
    return (*_rows(text), *(_rows(local.read_text(encoding="utf-8", errors="replace")) if local.is_file() else ()))


def _rows(text: str) -> Iterable[Ratio]:
    """Whole rows of a table; what is no number is left out."""
    for r in csv.DictReader(line for line in text.splitlines() if not line.startswith("#")):
        try:
            found = Ratio(str(r["change"]), str(r["workload"]), float(r["ratio"]))
        except (KeyError, TypeError, ValueError):
            continue
        if isfinite(found.ratio):
            yield found


def learn(file: Path, measured: Iterable[Ratio]) -> int:
    """Adds rows to the user's own file, one for a workload's change: a later trial of the same replaces it. How many."""
    known = {
        (r.change, r.workload): r.ratio for r in (_rows(file.read_text(encoding="utf-8")) if file.is_file() else ())
    }
    new = {(r.change, r.workload): r.ratio for r in measured}
    if not new:
        return 0
    lines = [f"{change},{workload},local,{ratio:.3f}" for (change, workload), ratio in sorted({**known, **new}.items())]
    part = file.with_name(file.name + ".part")
    part.write_text("\n".join((",".join(COLUMNS), *lines)) + "\n", encoding="utf-8")
    part.replace(file)
    return len(new)


@cache
def lost_in(change: str) -> tuple[int, int]:
    """In how many workloads this change lost time, and of how many."""
    own = [r for r in rows() if r.change == change]
    return sum(r.ratio <= 0 for r in own), len(own)


@cache
def doubt_of(change: str, without: str = "") -> tuple[float, float]:
    """The ends of what this change wins, as parts of what a replay of it says; `without` leaves a workload's rows out."""
    known = [r for r in rows() if r.workload != without and r.ratio > 0 and abs(log(r.ratio)) < ANOTHER_FIX]
    logs = {c: [_kept(r.ratio) for r in known if r.change == c] for c in dict.fromkeys(r.change for r in known)}
    everything = [x for c in logs.values() for x in c]
    middle, spread = _moments(everything, 0.0, log(1.3), 1)
    centre, width = _moments(logs.get(change, []), middle, spread, PRIOR_ROWS)
    half = min(_next_deviations(len(logs.get(change, [])) + PRIOR_ROWS) * width, WIDEST / 2)
    return exp(centre - half), exp(centre + half)


def _next_deviations(count: int) -> float:
    """How many deviations either side hold the next of these many rows as often as `DEVIATIONS` do with endlessly many."""
    free, z = count - 1, DEVIATIONS
    # Student's quantile by that of the normal (Cornish and Fisher), for a row beside the mean of the others.
    student = z + (z**3 + z) / (4 * free) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * free**2)
    return student * sqrt(1 + 1 / count)


def _kept(ratio: float) -> float:
    return min(max(log(ratio), -FARTHEST), FARTHEST)


def _moments(own: list[float], middle: float, spread: float, weight: int) -> tuple[float, float]:
    """Mean and deviation, drawn towards what is known besides."""
    count = len(own) + weight
    centre = (sum(own) + weight * middle) / count
    return centre, sqrt((sum((x - centre) ** 2 for x in own) + weight * spread**2) / count)
