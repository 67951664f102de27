"""The few numbers that were fitted to the cases (fitted.toml, written by `make knowledge`)."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np


@dataclass(frozen=True, slots=True)
class Fitted:
    """What each witness weighs in the logarithm of the odds, and how often an answer of that score turned out right."""

    weights: Mapping[str, float]
    scores: Sequence[float]  # raw probability of the first answer ...
    frequencies: Sequence[float]  # ... and how often such answers were right
    clue_lean: float = 2.0  # cases that a clue borrows from others of its word
    rate_lean: float = 20.0  # cases that a base rate borrows from how often its cause is seen at all

    def frequency(self, score: float) -> float:
        """From a raw probability to how often it holds."""
        return float(np.interp(score, self.scores, self.frequencies))


@cache
def fitted() -> Fitted:
    """As the last refit left it."""
    text = (files("stallwise.knowledge") / "fitted.toml").read_text(encoding="utf-8")
    return from_table(tomllib.loads(text))


def from_table(table: Mapping[str, Any]) -> Fitted:
    """The numbers of one table."""
    curve = table["right"]
    lean = table["lean"]
    return Fitted(dict(table["weights"]), tuple(curve["score"]), tuple(curve["frequency"]), lean["clue"], lean["rate"])


@cache
def told() -> Mapping[str, tuple[str, ...]]:
    """How each cause is told of (told/*.toml)."""
    found: dict[str, tuple[str, ...]] = {}
    for path in (files("stallwise.knowledge") / "told").iterdir():
        if path.name.endswith(".toml"):
            rows = tomllib.loads(path.read_text(encoding="utf-8"))
            found.update({cause: tuple(phrases) for cause, phrases in rows.items()})
    return found
