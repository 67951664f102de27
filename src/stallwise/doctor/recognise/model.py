"""The compiled classifier: rows of weights by feature, one column a cause (model.json, weights.npy, words.txt).

score(cause) = bias + (sum of idf x weight over the words) / norm + sum of clue weights + rule weight x the log odds of its rule.
A softmax over the scores gives the odds of the causes among each other; a curve with three numbers, fitted out of fold, turns the
first answer's share into how often such answers are right.
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

from stallwise.evidence.bag import DENIED, MANNER

LEAST_LENGTH = (
    12.0  # of the inverse document frequencies, below which a text is too short to judge: recorded ones begin at 17.7
)
AGAINST = 0.5  # of a word's weight: what a denial takes from the causes that the word speaks for
STEP = 1 / 127  # of a column's scale: weights are stored as whole numbers of it


LEVELS = (("certain", 0.9), ("strong", 0.8), ("weak", 0.0))  # what a prover's confidence means, and from where


def level_of(confidence: float) -> str:
    """Certain, strong or weak: how often each is right is counted, not typed."""
    return next((level for level, least in LEVELS if confidence >= least), LEVELS[-1][0])  # NaN of a damaged file, too


class Matrix(Protocol):
    """Rows of whole numbers; an array of numpy is one."""

    @property
    def shape(self) -> tuple[int, ...]: ...
    def __getitem__(self, row: int, /) -> Any: ...


class Stored:
    """A matrix of int8 in a .npy file. Of thousands of rows a text needs some thirty: only their pages are read."""

    def __init__(self, path: Path) -> None:
        with path.open("rb") as file:
            data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        size = int.from_bytes(
            data[8:10], "little"
        )  # of the header, which follows six bytes of magic and two of version 1.0
        shape = data[10 : 10 + size].decode("latin1").partition("'shape': (")[2].partition(")")[0]
        self.shape = tuple(int(n) for n in shape.split(",") if n.strip())
        self._cells = memoryview(data)[10 + size :].cast("b")

    def __getitem__(self, row: int) -> memoryview:
        width = self.shape[1]
        return self._cells[row * width : (row + 1) * width]


@dataclass(frozen=True, slots=True)
class Model:
    """Weights as stored; nothing is unpacked before it is asked for."""

    causes: tuple[str, ...]  # columns; the last is "something else"
    words: Mapping[str, int]  # feature -> row
    weights: Matrix  # word x cause, and a last column: how much a word tells of a run in which nothing is wrong
    idf: Sequence[float]
    scale: Sequence[float]  # of each column
    bias: Sequence[float]  # of each column
    clues: Mapping[str, tuple[float, float]]  # "cause: says" -> weight where it holds, weight where it does not
    rule: float  # weight of a rule's log odds
    else_words: float  # "something else" grows with the logarithm of the number of words,
    else_quiet: float  # and where nobody complains
    healthy_from: float  # from this share on words alone make no verdict,
    trouble_offset: float  # for the healthier such a text reads,
    trouble_slope: float  # the fewer of them have any trouble
    curve: tuple[float, ...]  # offset, slope and bend of the first answer's log odds: makes its probability a frequency
    threshold: float  # of `set_costs`: what the 90% set is cut at
    answers: Mapping[str, tuple[float, float]]  # by word of a clue: P(holds | cause), P(holds | another)
    provers: Mapping[
        str, float
    ]  # how often the cause was right where its prover spoke without a trace, in all and by level

    def reliability(self, cause: str, confidence: float) -> float:
        """Of the prover of this cause where it is so sure; one that no case has tried is taken at its word."""
        return self.provers.get(f"{cause} {level_of(confidence)}", self.provers.get(cause, 1.0))

    def contributions(self, words: Iterable[str]) -> tuple[list[str], list[list[float]]]:
        """Known words and what each adds to every cause; a denied word speaks against what it names."""
        known = sorted(w for w in words if w.removeprefix(DENIED) in self.words and not w.startswith(MANNER))
        scale = list(self.scale)[:-1]
        return known, [
            [cell * of * share for cell, of in zip(self._row(word), scale, strict=False)]
            for word, share in zip(known, self._shares(known), strict=True)
        ]

    def scores(
        self, words: Iterable[str], clues: Mapping[str, float], rules: Mapping[str, float], *, aloud: bool
    ) -> list[float]:
        """Of every cause, from words, summed clue weights and log odds of rules."""
        known, parts = self.contributions(words)
        found = [float(math.fsum(column)) for column in zip(list(self.bias)[:-1], *parts, strict=True)]
        place = {cause: i for i, cause in enumerate(self.causes)}
        for cause, weight in clues.items():
            found[place[cause]] += weight
        for cause, odds in rules.items():
            if cause in place:
                found[place[cause]] += self.rule * odds
        found[-1] += self.else_words * math.log1p(len(known)) + (0.0 if aloud else self.else_quiet)
        return found

    def healthy(self, words: Iterable[str]) -> float:
        """How much the words, those that say how the text speaks included, tell of a run in which nothing is wrong: about 0 to 1."""
        known = [w for w in words if w.removeprefix(DENIED) in self.words]
        of_healthy = (self._row(word)[-1] * share for word, share in zip(known, self._shares(known), strict=True))
        return float(self.bias[-1]) + float(self.scale[-1]) * math.fsum(of_healthy)

    def trouble(self, healthy: float) -> float:
        """How often a text that reads so healthy has trouble all the same."""
        return 1.0 / (1.0 + math.exp(-(self.trouble_offset + self.trouble_slope * healthy)))

    def long_enough(self, words: Iterable[str]) -> bool:
        """Whether so many words are known that their manner means something."""
        return math.hypot(*self._idf([w for w in words if w.removeprefix(DENIED) in self.words])) >= LEAST_LENGTH

    def _row(self, word: str) -> list[int]:
        row: list[int] = self.weights[self.words[word.removeprefix(DENIED)]].tolist()
        return row

    def _shares(self, known: Sequence[str]) -> list[float]:
        """The inverse document frequency of each word, of length one together; that of a denied word is negative."""
        idf = self._idf(known)
        norm = max(math.hypot(*idf), LEAST_LENGTH)
        return [x / norm for x in idf]

    def _idf(self, known: Sequence[str]) -> list[float]:
        return [
            float(self.idf[self.words[w.removeprefix(DENIED)]]) * (-AGAINST if w.startswith(DENIED) else 1.0)
            for w in known
        ]


def probabilities(scores: Sequence[float]) -> list[float]:
    """Softmax; a cause that cannot be has a score of minus infinity and no share."""
    most = max(scores)
    odds = [math.exp(score - most) for score in scores]
    total = math.fsum(odds)
    return [x / total for x in odds]


def recalibrated(chances: Sequence[float], offset: float, slope: float, bend: float = 0.0) -> list[float]:
    """The first named cause as sure as the curve says; the others share what it leaves as before."""
    first = max(range(len(chances) - 1), key=chances.__getitem__)
    share = min(max(float(chances[first]), 1e-6), 1.0 - 1e-6)
    odds = math.log(share / (1.0 - share))
    if bend < 0.0:  # a parabola rises up to its top only
        odds = min(odds, -slope / (2.0 * bend))
    sure = 1.0 / (1.0 + math.exp(-(offset + slope * odds + bend * odds * odds)))
    scaled = [float(chance) * ((1.0 - sure) / (1.0 - share)) for chance in chances]
    found = [*(min(chance, sure) for chance in scaled[:-1]), scaled[-1]]  # no other cause overtakes the first
    found[first] = sure
    total = math.fsum(found)
    return [x / total for x in found]


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
        **{name: meta[name] for name in SCALARS},
        curve=tuple(meta["curve"]),
        threshold=meta["threshold"],
        provers=meta["provers"],
        answers={word: (pair[0], pair[1]) for word, pair in meta["answers"].items()},
    )


SCALARS = ("rule", "else_words", "else_quiet", "healthy_from", "trouble_offset", "trouble_slope")
