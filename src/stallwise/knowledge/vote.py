"""The vote of the cases: what incidents that read like this one turned out to be.

Likeness of two cases is the cosine of their marks, rare ones weighing more. Each cause's score is the sum of the cases'
likeness times what each case says for or against the cause; what it says is solved for so that the cases explain each other
(a kernel ridge regression): ten cases that are alike do not shout ten times as loud as one.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache

import numpy as np
from numpy.typing import NDArray

from stallwise.knowledge.cases import Case, cases, leaving_out, left_out
from stallwise.knowledge.rarity import rarity

DOUBT = 0.3  # how little one case is believed, against a likeness of 1 to itself
SHORT = 2.0  # a text of few rare words is not sure to be like anything
WIDESPREAD = 32  # cases with a mark: from there on a dense column is cheaper than all pairs of its cases


@dataclass(frozen=True, slots=True)
class Electorate:
    """Every case, who has which mark, and how alike they are."""

    cases: tuple[Case, ...]
    causes: tuple[str, ...]
    rarities: Mapping[str, float]  # of every mark
    owners: Mapping[str, NDArray[np.intp]]  # of a mark: the cases that have it
    lengths: NDArray[np.float64]  # of the cases
    alike: NDArray[np.float64]  # case x case, with the doubt about each on the diagonal
    truth: NDArray[np.float64]  # case x cause


def votes(said: frozenset[str]) -> tuple[dict[str, float], tuple[Case, ...]]:
    """By cause; and the cases that are most like what was said, nearest first."""
    known = electorate()
    if not known.cases:
        return {}, ()
    like = np.zeros(len(known.cases))
    mine = sorted(mark for mark in said if mark in known.owners)
    for mark in mine:
        like[known.owners[mark]] += known.rarities[mark] ** 2
    like /= known.lengths * _length(mine, known.rarities)
    like[_silent(left_out())] = 0.0
    score = like @ _says(left_out())
    nearest = np.argsort(-like, kind="stable")[:3]
    return dict(zip(known.causes, map(float, score), strict=True)), tuple(
        known.cases[i] for i in nearest if like[i] > 0
    )


@cache
def electorate() -> Electorate:
    """Of all cases: how rare a word is and how alike two texts are tell nothing about what is behind them."""
    with leaving_out():
        known = tuple(c for c in cases() if c.words and c.causes)
        causes = tuple(sorted({x for c in known for x in c.causes}))
        holders: dict[str, list[int]] = defaultdict(list)
        for i, case in enumerate(known):
            for mark in sorted(case.words):
                holders[mark].append(i)
        owners = {mark: np.array(holders[mark]) for mark in sorted(holders)}
        rarities = {mark: rarity(mark) for mark in owners}
    lengths = np.array([_length(sorted(c.words), rarities) for c in known])
    at = {cause: i for i, cause in enumerate(causes)}
    truth = np.zeros((len(known), len(causes)))
    for i, case in enumerate(known):
        truth[i, [at[c] for c in case.causes]] = 1.0 / len(case.causes)
    doubt = np.diag([DOUBT / c.weight for c in known])  # a case of little weight is doubted more
    return Electorate(known, causes, rarities, owners, lengths, likeness(owners, rarities, lengths) + doubt, truth)


@cache
def _silent(without: frozenset[str]) -> NDArray[np.intp]:
    """The cases of projects that are left out."""
    return np.array([i for i, case in enumerate(electorate().cases) if case.project in without], dtype=np.intp)


@lru_cache(maxsize=2)  # one project's absence after the other
def _says(without: frozenset[str]) -> NDArray[np.float64]:
    """Case x cause, solved so that every case is explained by the others; those left out say nothing and explain nothing.

    A part of a system is solved by the inverse of the whole, less what goes through the rest of it.
    """
    known, silent = electorate(), _silent(without)
    heard = np.setdiff1d(np.arange(len(known.cases)), silent)
    truth = np.zeros_like(known.truth)
    if not len(heard):
        return truth
    truth[heard] = known.truth[heard] - known.truth[heard].mean(axis=0)
    if not len(silent):
        return np.asarray(np.linalg.solve(known.alike, truth))
    whole = _inverse()
    said = whole @ truth
    through = np.linalg.solve(whole[np.ix_(silent, silent)], said[silent])
    said = said - whole[:, silent] @ through
    said[silent] = 0.0
    return np.asarray(said)


@cache
def _inverse() -> NDArray[np.float64]:
    return np.asarray(np.linalg.inv(electorate().alike))


def likeness(
    owners: Mapping[str, NDArray[np.intp]], rarities: Mapping[str, float], lengths: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Of every case to every other: few marks are widespread, and the rest have few pairs of cases."""
    count = len(lengths)
    found = np.zeros((count, count))
    wide = [mark for mark, cases_ in owners.items() if len(cases_) >= WIDESPREAD]
    if wide:
        columns = np.zeros((count, len(wide)))
        for at, mark in enumerate(wide):
            columns[owners[mark], at] = rarities[mark]
        found += columns @ columns.T
    alike: dict[int, list[str]] = defaultdict(list)
    for mark, cases_ in owners.items():
        if len(cases_) < WIDESPREAD:
            alike[len(cases_)].append(mark)
    for marks in alike.values():
        who = np.stack([owners[m] for m in marks])
        weight = np.array([rarities[m] ** 2 for m in marks])
        np.add.at(found, (who[:, :, None], who[:, None, :]), weight[:, None, None])
    return np.asarray(found / np.outer(lengths, lengths))


def _length(marks: Sequence[str], rarities: Mapping[str, float]) -> float:
    return math.sqrt(math.fsum(rarities[mark] ** 2 for mark in marks) + SHORT)
