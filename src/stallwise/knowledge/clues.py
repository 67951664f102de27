"""How much an outcome of a clue tells, from counts: how often it held with its cause at work and without.

`clues.toml` (written by `make knowledge`) lists for every clue the cases that decide it. A clue is a Bernoulli variable with
two rates, one under its cause and one under others; each has a Beta prior whose mean is that of all clues of the same word
("decisive", "hint", "excludes" ...) and whose strength was fitted to how well cases of other projects are foretold. A clue
that no case ever denied has no rates of its own: nobody writes "the limit was not hit", so how often it might have been said
and was not cannot be counted.
"""

from __future__ import annotations

import tomllib
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from stallwise.knowledge.cases import left_out, with_drills
from stallwise.knowledge.fitted import fitted

UNSEEN = 1.0  # of either outcome, beside what all clues of a word have shown: no rate is zero or one


@dataclass(frozen=True, slots=True)
class Telling:
    """P(holds) where the cause is at work, and where another one is."""

    under: float
    other: float

    @property
    def ratio(self) -> float:
        """How much likelier the cause becomes when the clue holds."""
        return self.under / self.other

    @property
    def otherwise(self) -> float:
        """The same when it does not."""
        return (1.0 - self.under) / (1.0 - self.other)


def telling(cause: str, says: str, word: str) -> Telling:
    """Of the clue that says this for a cause; `word` is how its author thinks it tells."""
    means, counted, strength = _tables(left_out())
    under, other = (
        (held + strength * mean) / (decided + strength)
        for (held, decided), mean in zip(
            counted.get((cause, says), ((0.0, 0.0), (0.0, 0.0))), means.get(word, (0.5, 0.5)), strict=True
        )
    )
    return Telling(under, other)


_Count = tuple[float, float]  # held, decided


@cache
def _tables(
    _without: frozenset[str],
) -> tuple[Mapping[str, _Count], Mapping[tuple[str, str], tuple[_Count, _Count]], float]:
    weight = {case.id: case.weight for case in with_drills()}
    known = _counted()
    counted: dict[tuple[str, str], tuple[_Count, _Count]] = {}
    pooled: dict[str, list[float]] = defaultdict(lambda: [0.0] * 4)
    for row in known["clue"]:
        sums = [
            sum(weight.get(i, 0.0) for i in row.get(name, ()))
            for name in ("held_with", "denied_with", "held_without", "denied_without")
        ]
        if sums[1] + sums[3] == 0.0:
            continue
        counted[row["cause"], row["says"]] = ((sums[0], sums[0] + sums[1]), (sums[2], sums[2] + sums[3]))
        for i, value in enumerate(sums):
            pooled[row["tells"]][i] += value
    means = {word: (_mean(p[0], p[1]), _mean(p[2], p[3])) for word, p in pooled.items()}
    return means, counted, fitted().clue_lean


def _mean(held: float, denied: float) -> float:
    return (held + UNSEEN) / (held + denied + 2.0 * UNSEEN)


@cache
def _counted() -> dict[str, Any]:
    return tomllib.loads((files("stallwise.knowledge") / "clues.toml").read_text(encoding="utf-8"))
