"""The compiled classifier: a row of weights for each feature, a column for each cause and one for trouble.

It lies in model.json, weights.npy and words.txt.

Features come in three blocks: stems with pairs, trigrams, manner. In each block a text is a vector of inverse document frequencies
of length one. score(cause) = bias + vector x weights + clue weights + weight of provers x their log odds; a softmax over the scores
gives the odds of the causes among each other, and a logistic curve, fitted out of fold, how often a first answer this sure is right.
P(trouble), from the last column, says how likely a text complains at all; what it leaves belongs to "something else".
"""

from __future__ import annotations

import json
import math
import mmap
from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import accumulate
from pathlib import Path
from typing import Any, Protocol

from stallwise.evidence.bag import DENIED, MANNER, TRIGRAM

AGAINST = 0.5  # of a word's weight: what a denial takes from the causes that the word speaks for
# Of the squared length of a text's vector; of shares in steps of 0.1 the least out-of-fold log loss.
BLOCKS = {"": 0.45, TRIGRAM: 0.45, MANNER: 0.1}
# The least length of a block's vector among the recorded texts: the few words of a shorter text weigh no more than theirs.
LEAST_LENGTH = {"": 12.0, TRIGRAM: 30.0, MANNER: 0.0}
FARTHEST = 7.0  # log odds: beyond, one answer in a thousand, nothing can be counted
LEVELS = (("certain", 0.9), ("strong", 0.8), ("weak", 0.0))  # what a prover's confidence means, and from where


def level_of(confidence: float) -> str:
    """Certain, strong or weak: how often each is right is counted, not typed."""
    return next((level for level, least in LEVELS if confidence >= least), LEVELS[-1][0])  # NaN of a damaged file, too


def block_of(word: str) -> str:
    """The prefix that names a feature's block."""
    return next((block for block in (TRIGRAM, MANNER) if word.startswith(block)), "")


class Matrix(Protocol):
    """Rows of whole numbers; an array of numpy is one."""

    @property
    def shape(self) -> tuple[int, ...]: ...
    def __getitem__(self, row: int, /) -> Any: ...


class Stored:
    """A matrix of int8 in a .npy file. Of thousands of rows a text needs some hundred: only their pages are read."""

    def __init__(self, path: Path) -> None:
        with path.open("rb") as file:
            data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        size = int.from_bytes(data[8:10], "little")  # of the header, after six bytes of magic and two of version 1.0
        shape = data[10 : 10 + size].decode("latin1").partition("'shape': (")[2].partition(")")[0]
        self.shape = tuple(int(n) for n in shape.split(",") if n.strip())
        self._cells = memoryview(data)[10 + size :].cast("b")

    def __getitem__(self, row: int) -> memoryview:
        width = self.shape[1]
        return self._cells[row * width : (row + 1) * width]


@dataclass(frozen=True, slots=True)
class Model:
    """Weights as stored; nothing is unpacked before it is asked for."""

    causes: tuple[str, ...]  # columns
    words: Mapping[str, int]  # feature -> row
    weights: Matrix  # feature x cause, and a last column for trouble
    idf: Sequence[float]
    scale: Sequence[float]  # of each column
    bias: Sequence[float]  # of each column
    clues: Mapping[str, tuple[float, float]]  # "cause: says" -> weight where it holds, weight where it does not
    rule: float  # weight of a prover's log odds
    trouble: tuple[float, float, float]  # offset, weight of the column, weight of a complaint in numbers
    # Offset and slope of the first cause's log odds: make its probability, where there is trouble, a frequency.
    curve: tuple[float, float]
    threshold: float  # of `set_costs`: what the 90% set is cut at
    answers: Mapping[str, tuple[float, float]]  # by word of a clue: P(holds | cause), P(holds | another)
    provers: Mapping[
        str, float
    ]  # how often the cause was right where its prover spoke without a trace, in all and by level

    def reliability(self, cause: str, confidence: float) -> float:
        """Of the prover of this cause where it is so sure; one that no case has tried is trusted."""
        return self.provers.get(f"{cause} {level_of(confidence)}", self.provers.get(cause, 1.0))

    def knows(self, word: str) -> bool:
        """Whether a feature has weights."""
        return word.removeprefix(DENIED) in self.words

    def contributions(self, words: Iterable[str]) -> tuple[list[str], list[list[float]]]:
        """Known features and what each adds to every column; a denied word speaks against what it names."""
        known = sorted(filter(self.knows, words))
        rows = (
            (self.weights[self.words[word.removeprefix(DENIED)]].tolist(), share) for word, share in self._vector(known)
        )
        return known, [[cell * of * share for cell, of in zip(row, self.scale, strict=True)] for row, share in rows]

    def scores(self, words: Iterable[str]) -> tuple[list[float], float]:
        """Of every cause by words alone, and of trouble."""
        *causes, trouble = map(math.fsum, zip(self.bias, *self.contributions(words)[1], strict=True))
        return causes, trouble

    def trouble_in(self, score: float, *, in_numbers: bool) -> float:
        """How likely somebody has trouble, by the score of a text and by whether numbers show a symptom."""
        offset, slope, shown = self.trouble
        return 1.0 / (1.0 + math.exp(-(offset + slope * score + shown * in_numbers)))

    def _vector(self, known: Sequence[str]) -> list[tuple[str, float]]:
        """Each feature with its inverse document frequency, each block of its own length; that of a denied word is negative."""
        idf = [
            (word, self.idf[self.words[word.removeprefix(DENIED)]] * (-AGAINST if word.startswith(DENIED) else 1.0))
            for word in known
        ]
        length = {
            block: max(math.hypot(*(x for w, x in idf if block_of(w) == block)), LEAST_LENGTH[block], 1e-9)
            for block in BLOCKS
        }
        return [(word, math.sqrt(BLOCKS[block_of(word)]) * x / length[block_of(word)]) for word, x in idf]


def probabilities(scores: Sequence[float]) -> list[float]:
    """Softmax; a cause that cannot be has a score of minus infinity and no share."""
    most = max(scores)
    odds = [math.exp(score - most) for score in scores]
    total = math.fsum(odds)
    return [x / total for x in odds]


def log_odds(share: float) -> float:
    """Of a probability; as far as anything can be counted."""
    return max(-FARTHEST, min(FARTHEST, math.log(max(share, 1e-9)) - math.log(max(1.0 - share, 1e-9))))


def recalibrated(shares: Sequence[float], trouble: float, curve: Sequence[float]) -> list[float]:
    """The first cause as sure as such first answers are right; the others share what trouble leaves beside it, as before.

    `shares`: of the causes, if there is trouble; `trouble`: how likely there is.
    """
    first = max(range(len(shares)), key=shares.__getitem__)
    offset, slope = curve
    sure = trouble / (1.0 + math.exp(-(offset + slope * log_odds(shares[first]))))
    rest = max(trouble - sure, 0.0) / max(1.0 - shares[first], 1e-9)
    found = [min(x * rest, sure) for x in shares]  # no other cause overtakes the first
    found[first] = sure
    return found


def set_costs(ordered: Sequence[float]) -> list[float]:
    """Of each cause in the order of its probability: what is likelier, and a fine for every one beyond a readable few."""
    before = accumulate(ordered, initial=0.0)
    return [x + FINE * max(0, place - READABLE + 1) for place, (x, _) in enumerate(zip(before, ordered, strict=False))]


READABLE, FINE = 4, 0.05  # regularised adaptive sets: of 1-5 and 0.02-0.2 the smallest mean size at equal coverage


@cache
def model() -> Model:
    """As the last fit left it."""
    folder = Path(__file__).parent
    meta: dict[str, Any] = json.loads((folder / "model.json").read_text(encoding="utf-8"))
    words = (folder / "words.txt").read_text(encoding="utf-8").split("\n")
    levels = meta["idf"]
    return Model(
        causes=tuple(meta["causes"]),
        words={word: row for row, word in enumerate(words)},
        weights=Stored(folder / "weights.npy"),
        idf=array("f", [levels[code - ord("0")] for code in meta["idf_of"].encode("ascii")]),  # one character a word
        scale=array("f", meta["scale"]),
        bias=array("f", meta["bias"]),
        clues={key: (pair[0], pair[1]) for key, pair in meta["clues"].items()},
        rule=meta["rule"],
        trouble=(meta["trouble"][0], meta["trouble"][1], meta["trouble"][2]),
        curve=(meta["curve"][0], meta["curve"][1]),
        threshold=meta["threshold"],
        provers=meta["provers"],
        answers={word: (pair[0], pair[1]) for word, pair in meta["answers"].items()},
    )
