"""The vote of the cases: what incidents that read like this one turned out to be.

Likeness of two cases is the cosine of their marks, rare ones weighing more. Each cause's score is the sum of the cases'
likeness times what each case says for or against the cause; what it says is solved for so that the cases explain each other
(a kernel ridge regression): ten cases that are alike do not shout ten times as loud as one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from stallwise.knowledge.cases import Case, cases, left_out
from stallwise.knowledge.rarity import rarity

DOUBT = 0.3  # how little one case is believed, against a likeness of 1 to itself
SHORT = 2.0  # a text of few rare words is not sure to be like anything


@dataclass(frozen=True, slots=True)
class Electorate:
    """Cases as columns, and what each says."""

    cases: tuple[Case, ...]
    causes: tuple[str, ...]
    column: Mapping[str, int]  # of a mark
    rarities: NDArray[np.float32]
    marks: NDArray[np.float32]  # case x mark, of length below 1
    says: NDArray[np.float64]  # case x cause


def votes(said: frozenset[str]) -> tuple[dict[str, float], tuple[Case, ...]]:
    """By cause; and the cases that are most like what was said, nearest first."""
    known = electorate()
    if not known.cases:
        return {}, ()
    like = known.marks @ _row(said, known)
    score = like.astype(np.float64) @ known.says
    nearest = np.argsort(-like, kind="stable")[:3]
    return dict(zip(known.causes, map(float, score), strict=True)), tuple(known.cases[i] for i in nearest)


def electorate() -> Electorate:
    """Of the cases that count at the moment."""
    return _electorate(left_out())


@cache
def _electorate(_without: frozenset[str]) -> Electorate:
    known = tuple(c for c in cases() if c.words and c.causes)
    column = {mark: i for i, mark in enumerate(sorted({w for c in known for w in c.words}))}
    causes = tuple(sorted({x for c in known for x in c.causes}))
    rarities = np.array([rarity(mark) for mark in column], dtype=np.float32)
    empty = Electorate(known, causes, column, rarities, np.zeros((0, 0), np.float32), np.zeros((0, 0)))
    if not known:
        return empty
    marks = np.stack([_row(c.words, empty) for c in known])
    at = {cause: i for i, cause in enumerate(causes)}
    truth = np.zeros((len(known), len(causes)))
    for i, case in enumerate(known):
        truth[i, [at[c] for c in case.causes]] = 1.0 / len(case.causes)
    return Electorate(known, causes, column, rarities, marks, what_each_says(marks, truth, known))


def what_each_says(
    marks: NDArray[np.float32], truth: NDArray[np.float64], known: Sequence[Case]
) -> NDArray[np.float64]:
    """Solved so that every case is explained by the others; a case of little weight is doubted more."""
    doubt = np.diag([DOUBT / c.weight for c in known])
    return np.linalg.solve((marks @ marks.T).astype(np.float64) + doubt, truth - truth.mean(axis=0))


def _row(said: frozenset[str], known: Electorate) -> NDArray[np.float32]:
    row = np.zeros(len(known.column), dtype=np.float32)
    at = [known.column[m] for m in said if m in known.column]
    row[at] = known.rarities[at]
    return row / np.float32(np.sqrt(float(row @ row) + SHORT))
