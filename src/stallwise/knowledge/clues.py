"""How much a clue tells, from counts: how often it held with its cause at work and without.

`clues/*.toml` (written by `make knowledge`) lists for every clue the cases that decide it. A clue is a Bernoulli variable with two
rates, one under its cause and one under others. Each has a Beta prior whose mean is that of all clues of the same word
("decisive", "hint", "against" ...) and whose strength, in cases, was fitted to how well cases of other projects are foretold. Of
what nobody ever denies ("the limit was not hit" is written nowhere) only those who saw it can be counted, with the cause and
without: as much oftener or seldomer than others of its word as they had the cause, it tells more or less than its word does.
"""

from __future__ import annotations

import tomllib
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, get_args

from stallwise.findings.clue import WHEN_SEEN, Clue, Tells
from stallwise.knowledge.cases import WEIGHTS, cases, left_out
from stallwise.knowledge.fitted import fitted

UNSEEN = 1.0  # case of either outcome, beside all that clues of a word have shown: no rate is zero or one
SIDES = ("held_with", "denied_with", "held_without", "denied_without")
_Four = tuple[float, float, float, float]  # cases on each side, by weight


@dataclass(frozen=True, slots=True)
class Telling:
    """P(holds) where the cause is at work, and where another one is."""

    under: float
    other: float
    silent: bool  # where it does not hold

    @property
    def ratio(self) -> float:
        """How much likelier the cause becomes when the clue holds."""
        return self.under / self.other

    @property
    def otherwise(self) -> float:
        """The same when it does not."""
        return 1.0 if self.silent else (1.0 - self.under) / (1.0 - self.other)


def telling(cause: str, clue: Clue) -> Telling:
    """Of one clue of a cause, as the cases that count at the moment have it; of its word where it is new."""
    own, of_word = _tables(left_out())
    return own.get((cause, clue.says)) or of_word[clue.tells]


@cache
def _tables(_without: frozenset[str]) -> tuple[Mapping[tuple[str, str], Telling], Mapping[str, Telling]]:
    seen = {(row["cause"], row["says"]): (str(row["tells"]), sides) for row, sides in _counted()}
    pooled: dict[str, list[float]] = defaultdict(lambda: [0.0] * 4)  # of those that somebody denied
    spoken: dict[str, list[float]] = defaultdict(lambda: [0.0] * 4)  # of all
    for tells, sides in seen.values():
        for i, count in enumerate(sides):
            spoken[_word(tells)][i] += count
            if _contrasted(tells, sides):
                pooled[tells][i] += count
    for tells in list(pooled):  # what is told when seen is as rare without its cause as others of its word
        for i, count in enumerate(pooled[tells]):
            pooled[_word(tells) + WHEN_SEEN][i] += count
    means = {tells: _rates(tuple(pooled[tells]), (0.5, 0.5), 2.0 * UNSEEN) for tells in get_args(Tells)}  # type: ignore[arg-type]
    lean = fitted().clue_lean
    own: dict[tuple[str, str], Telling] = {}
    for key, (tells, sides) in seen.items():
        under, other = means[tells]
        if _contrasted(tells, sides):
            under, other = _rates(sides, means[tells], lean)
        else:
            with_, _, without, _ = spoken[_word(tells)]
            usual = (with_ + UNSEEN) / (with_ + without + 2.0 * UNSEEN)
            oftener = (sides[0] + lean * usual) / usual / ((sides[2] + lean * (1.0 - usual)) / (1.0 - usual))
            other = min(other / oftener, 0.5 * (1.0 + other))
        own[key] = Telling(under, other, tells.endswith(WHEN_SEEN))
    return own, {tells: Telling(*rates, tells.endswith(WHEN_SEEN)) for tells, rates in means.items()}


def _word(tells: str) -> str:
    return tells.removesuffix(WHEN_SEEN).removesuffix(", needed")


def _contrasted(tells: str, sides: _Four) -> bool:
    """Whether some case says that it does not hold, so that how often it holds can be counted."""
    return not tells.endswith(WHEN_SEEN) and sides[1] + sides[3] > 0.0


def _rates(sides: _Four, means: tuple[float, float], lean: float) -> tuple[float, float]:
    held, denied, held_without, denied_without = sides
    under = _leaning(held, held + denied, means[0], lean)
    return under, _leaning(held_without, held_without + denied_without, means[1], lean)


def _leaning(held: float, decided: float, mean: float, lean: float) -> float:
    """A rate of few cases leans on its word's; what no case has shown stays half a case away from never and always."""
    rate = (held + lean * mean) / (decided + lean)
    least = UNSEEN / 2.0 / (decided + 1.0 / min(mean, 1.0 - mean))
    return min(max(rate, least), 1.0 - least)


def _counted() -> Iterator[tuple[Mapping[str, Any], _Four]]:
    known = {c.id: c for c in cases()}
    for row in listed():
        sums = [WEIGHTS["drill"] * count for count in row["drilled"]]
        for place, side in enumerate(SIDES):
            for case in (known[i] for i in row.get(side, ()) if i in known):
                sums[place] += case.share if side.endswith("_with") else case.weight
        yield row, (sums[0], sums[1], sums[2], sums[3])


@cache
def listed() -> tuple[Mapping[str, Any], ...]:
    """The cases that decide each clue."""
    folder = files("stallwise.knowledge") / "clues"
    found = sorted((p for p in folder.iterdir() if p.name.endswith(".toml")), key=lambda p: p.name)
    return tuple(row for path in found for row in tomllib.loads(path.read_text(encoding="utf-8"))["clue"])
