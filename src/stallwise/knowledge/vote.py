"""The vote of the cases: what incidents that read like this one turned out to be.

Likeness of two cases is the cosine of their marks, rare ones weighing more. Each cause's score is the sum of the cases'
likeness times what each case says for or against the cause; what it says is solved for so that the cases explain each other
(a kernel ridge regression): ten cases that are alike do not shout ten times as loud as one. One text asks one question of the
system, so it is solved for that text alone, by conjugate gradients over the marks that the cases have.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache

import numpy as np
from numpy.typing import NDArray

from stallwise.knowledge.cases import Case, cases, leaving_out, left_out
from stallwise.knowledge.rarity import rarity

DOUBT = 0.5  # how little one case is believed, against a likeness of 1 to itself
PAIR = 0.7  # of two words that stand together: they repeat what each of them says
SHORT = 2.0  # a text of few rare words is not sure to be like anything
NEAR = 1e-6  # of the question's length: what is left unsolved moves no digit that is told
MOST_ROUNDS = 500  # some thirty do


@dataclass(frozen=True, slots=True)
class Electorate:
    """Every case with its marks, as entries of a table that is nearly empty."""

    cases: tuple[Case, ...]
    causes: tuple[str, ...]
    column: Mapping[str, int]  # of a mark
    rarities: NDArray[np.float64]
    owner: NDArray[np.intp]  # of an entry: the case
    mark: NDArray[np.intp]
    weight: NDArray[np.float64]  # of the mark in the case, whose length is below 1
    doubt: NDArray[np.float64]  # of a case; those of little weight are doubted more
    truth: NDArray[np.float64]  # case x cause

    def on_marks(self, by_case: NDArray[np.float64]) -> NDArray[np.float64]:
        """Of every mark, the sum over its cases."""
        return np.asarray(np.bincount(self.mark, self.weight * by_case[self.owner], len(self.column)), dtype=np.float64)

    def on_cases(self, by_mark: NDArray[np.float64]) -> NDArray[np.float64]:
        """Of every case, the sum over its marks."""
        return np.asarray(np.bincount(self.owner, self.weight * by_mark[self.mark], len(self.cases)), dtype=np.float64)


def votes(said: frozenset[str]) -> tuple[dict[str, float], tuple[Case, ...]]:
    """By cause; and the cases that are most like what was said, nearest first."""
    return _votes(said, left_out())


@lru_cache(maxsize=1)  # whoever weighs the causes asks for both by turns
def _votes(said: frozenset[str], without: frozenset[str]) -> tuple[dict[str, float], tuple[Case, ...]]:
    known = electorate()
    heard = np.array([case.project not in without for case in known.cases], dtype=bool)
    if not heard.any():
        return {}, ()
    text = np.zeros(len(known.column))
    at = sorted(map(known.column.__getitem__, known.column.keys() & said))
    text[at] = known.rarities[at] / _length(known.rarities[at])
    like = np.where(heard, known.on_cases(text), 0.0)
    nearest = np.argsort(-like, kind="stable")[:3]
    score = _solved(known, heard, like) @ (known.truth - known.truth[heard].mean(axis=0))
    return dict(zip(known.causes, map(float, score), strict=True)), tuple(
        known.cases[i] for i in nearest if like[i] > 0
    )


def _solved(known: Electorate, heard: NDArray[np.bool_], like: NDArray[np.float64]) -> NDArray[np.float64]:
    """How much each case speaks: (likeness of the cases + doubt) x = likeness to the text, over the cases that are heard."""
    found, rest = np.zeros_like(like), like
    way, size = rest, float(rest @ rest)
    enough = (NEAR**2) * size
    for _ in range(MOST_ROUNDS):
        if size <= enough:
            break
        pushed = np.where(heard, known.on_cases(known.on_marks(way)), 0.0) + known.doubt * way
        step = size / float(way @ pushed)
        found, rest = found + step * way, rest - step * pushed
        size, before = float(rest @ rest), size
        way = rest + (size / before) * way
    return found


@cache
def electorate() -> Electorate:
    """Of all cases: how rare a word is and how alike two texts are tell nothing about what is behind them."""
    with leaving_out():
        known = tuple(c for c in cases() if c.words and c.causes)
        column = {mark: i for i, mark in enumerate(sorted({w for c in known for w in c.words}))}
        rarities = np.array([rarity(mark) * (PAIR if " " in mark else 1.0) for mark in column])
    causes = tuple(sorted({x for c in known for x in c.causes}))
    at = {cause: i for i, cause in enumerate(causes)}
    truth = np.zeros((len(known), len(causes)))
    owner, mark, weight = [], [], []
    for i, case in enumerate(known):
        places = np.arange(1, len(case.causes) + 1)  # the likelier come first
        truth[i, [at[c] for c in case.causes]] = (1 / places) / np.sum(1 / places)
        mine = np.array(sorted(column[m] for m in case.words))
        owner.append(np.full(len(mine), i))
        mark.append(mine)
        weight.append(rarities[mine] / _length(rarities[mine]))
    doubt = np.array([DOUBT / c.weight for c in known])
    empty = np.zeros(0)
    return Electorate(
        known, causes, column, rarities, _joined(owner), _joined(mark), np.concatenate([*weight, empty]), doubt, truth
    )


def _joined(parts: Sequence[NDArray[np.intp]]) -> NDArray[np.intp]:
    return np.concatenate([*parts, np.zeros(0, dtype=np.intp)]).astype(np.intp)


def _length(rarities: NDArray[np.float64]) -> float:
    return math.sqrt(float(rarities @ rarities) + SHORT)
