"""The compiled classifier: rows of weights by feature, one column a cause (model.json, weights.npy, words.txt).

score(cause) = bias + (sum of idf x weight over the words) / norm + sum of clue weights + rule weight x the log odds of its rule.
A softmax over the scores gives the odds of the causes among each other; a curve with three numbers, fitted out of fold, turns the
first answer's share into how often such answers are right.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stallwise.evidence.bag import DENIED, MANNER

AGAINST = 0.5  # of a word's weight: what a denial takes from the causes that the word speaks for
STEP = 1 / 127  # of a column's scale: weights are stored as whole numbers of it


LEVELS = (("certain", 0.9), ("strong", 0.8), ("weak", 0.0))  # what a prover's confidence means, and from where


def level_of(confidence: float) -> str:
    """Certain, strong or weak: how often each is right is counted, not typed."""
    return next((level for level, least in LEVELS if confidence >= least), LEVELS[-1][0])  # NaN of a damaged file, too


@dataclass(frozen=True, slots=True)
class Model:
    """Weights as stored; nothing is unpacked before it is asked for."""

    causes: tuple[str, ...]  # columns; the last is "something else"
    words: Mapping[str, int]  # feature -> row
    weights: NDArray[
        np.int8
    ]  # word x cause, and a last column: how much a word tells of a run in which nothing is wrong
    idf: NDArray[np.float32]
    scale: NDArray[np.float32]  # of each column
    bias: NDArray[np.float32]  # of each column
    clues: Mapping[str, tuple[float, float]]  # "cause: says" -> weight where it holds, weight where it does not
    rule: float  # weight of a rule's log odds
    else_words: float  # "something else" grows with the logarithm of the number of words,
    else_quiet: float  # and where nobody complains
    calm_from: float  # from this share of calm on words alone make no verdict,
    calm_trouble: float  # for of such texts only so many have any trouble
    curve: tuple[float, ...]  # offset, slope and bend of the first answer's log odds: makes its probability a frequency
    threshold: float  # of `set_costs`: what the 90% set is cut at
    answers: Mapping[str, tuple[float, float]]  # by word of a clue: P(holds | cause), P(holds | another)
    provers: Mapping[
        str, float
    ]  # how often the cause was right where its prover spoke without a trace, in all and by level

    def reliability(self, cause: str, confidence: float) -> float:
        """Of the prover of this cause where it is so sure; one that no case has tried is taken at its word."""
        return self.provers.get(f"{cause} {level_of(confidence)}", self.provers.get(cause, 1.0))

    def contributions(self, words: Iterable[str]) -> tuple[list[str], NDArray[np.float32]]:
        """Known words and what each adds to every cause; a denied word speaks against what it names."""
        known = sorted(w for w in words if w.removeprefix(DENIED) in self.words and not w.startswith(MANNER))
        rows, idf = self._rows(known)
        norm = float(np.sqrt((idf**2).sum())) or 1.0
        return known, self.weights[rows, :-1].astype(np.float32) * self.scale[:-1] * (idf / norm)[:, None]

    def scores(
        self, words: Iterable[str], clues: Mapping[str, float], rules: Mapping[str, float], *, aloud: bool
    ) -> NDArray[np.float64]:
        """Of every cause, from words, summed clue weights and log odds of rules."""
        known, parts = self.contributions(words)
        found = self.bias[:-1].astype(np.float64) + parts.sum(axis=0)
        place = {cause: i for i, cause in enumerate(self.causes)}
        for cause, weight in clues.items():
            found[place[cause]] += weight
        for cause, odds in rules.items():
            if cause in place:
                found[place[cause]] += self.rule * odds
        found[-1] += self.else_words * math.log1p(len(known)) + (0.0 if aloud else self.else_quiet)
        return np.asarray(found)

    def calm(self, words: Iterable[str]) -> float:
        """How much the words, those that say how the text speaks included, tell of a run in which nothing is wrong: about 0 to 1."""
        rows, idf = self._rows([w for w in words if w.removeprefix(DENIED) in self.words])
        norm = float(np.sqrt((idf**2).sum())) or 1.0
        return float(self.bias[-1] + (self.weights[rows, -1].astype(np.float32) * self.scale[-1] * idf).sum() / norm)

    def _rows(self, known: list[str]) -> tuple[NDArray[np.intp], NDArray[np.float32]]:
        rows = np.array([self.words[w.removeprefix(DENIED)] for w in known], dtype=np.intp)
        sign = np.array([-AGAINST if w.startswith(DENIED) else 1.0 for w in known], dtype=np.float32)
        return rows, self.idf[rows] * sign


def probabilities(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """Softmax; a cause that cannot be has a score of minus infinity and no share."""
    odds = np.exp(scores - scores.max())
    return np.asarray(odds / odds.sum())


def recalibrated(chances: NDArray[np.float64], offset: float, slope: float, bend: float = 0.0) -> NDArray[np.float64]:
    """The first named cause as sure as the curve says; the others share what it leaves as before."""
    first = int(chances[:-1].argmax())
    share = float(np.clip(chances[first], 1e-6, 1.0 - 1e-6))
    odds = math.log(share / (1.0 - share))
    if bend < 0.0:  # a parabola rises up to its top only
        odds = min(odds, -slope / (2.0 * bend))
    sure = 1.0 / (1.0 + math.exp(-(offset + slope * odds + bend * odds * odds)))
    found = chances * ((1.0 - sure) / (1.0 - share))
    found[:-1] = np.minimum(found[:-1], sure)  # no other cause overtakes the first
    found[first] = sure
    return np.asarray(found / found.sum())


def set_costs(ordered: NDArray[np.float64]) -> NDArray[np.float64]:
    """Of each cause in the order of its probability: what is likelier, and a fine for every one beyond a readable few."""
    before = np.cumsum(ordered) - ordered
    return np.asarray(before + FINE * np.maximum(0, np.arange(len(ordered)) - READABLE + 1))


READABLE, FINE = 4, 0.05  # regularised adaptive sets: of 1-5 and 0.02-0.2 the smallest mean size at equal coverage


@cache
def model() -> Model:
    """As the last fit left it."""
    folder = Path(__file__).parent
    meta: dict[str, Any] = json.loads((folder / "model.json").read_text(encoding="utf-8"))
    words = (folder / "words.txt").read_text(encoding="utf-8").split("\n")
    weights = np.load(folder / "weights.npy", mmap_mode="r", allow_pickle=False)
    return Model(
        causes=tuple(meta["causes"]),
        words={word: row for row, word in enumerate(words)},
        weights=weights,
        idf=np.array(meta["idf"], dtype=np.float32)[_codes(meta["idf_of"])],
        scale=np.array(meta["scale"], dtype=np.float32),
        bias=np.array(meta["bias"], dtype=np.float32),
        clues={key: (pair[0], pair[1]) for key, pair in meta["clues"].items()},
        **{name: meta[name] for name in SCALARS},
        curve=tuple(meta["curve"]),
        threshold=meta["threshold"],
        provers=meta["provers"],
        answers={word: (pair[0], pair[1]) for word, pair in meta["answers"].items()},
    )


SCALARS = ("rule", "else_words", "else_quiet", "calm_from", "calm_trouble")


def _codes(text: str) -> NDArray[np.intp]:
    """One character a word: which of the levels of idf it has."""
    return np.frombuffer(text.encode("ascii"), dtype=np.uint8).astype(np.intp) - ord("0")
