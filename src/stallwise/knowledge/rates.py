"""Base rates: how often a cause is behind a complaint, from counts.

Under each symptom the cases are counted, a case that allows several causes counting in parts for each. A rule's author says by
a word how often its cause is behind a symptom ("mostly", "often", "at times", "seldom"); what a word comes to is counted over all
causes and symptoms that carry it, and a symptom with few cases leans on that; how much, was fitted. How often the parts of
a machine fail nobody's issue tracker tells, nor what slows jobs in which nothing is broken, so `published/*.toml` has its say
there, each table under the symptoms it was counted under: faults, and groups of causes.
"""

from __future__ import annotations

import math
import tomllib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Literal

from stallwise.findings.symptom import Symptom
from stallwise.knowledge.cases import cases, left_out
from stallwise.knowledge.fitted import fitted

UNSEEN = 0.5  # case: whatever somebody declares was met by somebody, though not by these cases
Often = Literal["mostly", "often", "at times", "seldom"]
Declared = Callable[[], Mapping[str, Mapping[str, Often]]]  # by symptom and cause: what the rules say


@dataclass(frozen=True, slots=True)
class Counted(Mapping[Symptom, float]):
    """The base rates of one cause under the symptoms that it declares, as the cases that count at the moment have them."""

    cause: str
    symptoms: Mapping[Symptom, Often]
    declared: Declared

    def __getitem__(self, symptom: Symptom) -> float:
        if symptom not in self.symptoms:
            raise KeyError(symptom)
        return rates(symptom.name, self.declared)[self.cause]

    def __contains__(self, symptom: object) -> bool:
        return symptom in self.symptoms  # without counting: counting asks everybody what they declare

    def __iter__(self) -> Iterator[Symptom]:
        return iter(self.symptoms)

    def __len__(self) -> int:
        return len(self.symptoms)


def rates(symptom: str, declared: Declared) -> Mapping[str, float]:
    """P(cause | somebody complains of this), of every cause that can be behind it."""
    return _rates(left_out(), symptom, declared)


@cache
def _rates(_without: frozenset[str], symptom: str, declared: Declared) -> Mapping[str, float]:
    counts, heard = _counted(_without)
    lean = fitted().rate_lean
    prior = _prior(_without, symptom, declared)
    ours = {c: (counts[symptom, c] + lean * share) / (heard[symptom] + lean) for c, share in prior.items()}
    for table in (t for t in published() if "group" in t and symptom in t["under"]):
        for group in table["group"]:
            ours = _with_group(ours, group["causes"], group["share"])
    return ours


def _prior(without: frozenset[str], symptom: str, declared: Declared) -> dict[str, float]:
    """By the words of the rules alone; causes that a table counts under the symptom share their part half by it."""
    words = _words(without, declared)
    prior = {cause: words[word] for cause, word in declared().get(symptom, {}).items()}
    whole = math.fsum(prior.values())
    prior = {cause: share / whole for cause, share in prior.items()}
    for table in (t for t in published() if "counts" in t and symptom in t["under"]):
        listed = {c: n for c, n in table["counts"].items() if c in prior}
        ours, theirs = math.fsum(prior[c] for c in listed), math.fsum(listed.values())
        prior |= {c: (prior[c] + ours * n / theirs) / 2.0 for c, n in listed.items()}
    return prior


@cache
def _words(without: frozenset[str], declared: Declared) -> Mapping[str, float]:
    """What each word comes to: the part of the cases under a symptom that a cause of that word has, on average."""
    counts, heard = _counted(without)
    had: Counter[str] = Counter()
    of: Counter[str] = Counter()
    for symptom, causes in declared().items():
        for cause, word in causes.items():
            had[word] += counts[symptom, cause]  # type: ignore[assignment]
            of[word] += heard[symptom]  # type: ignore[assignment]
    return {word: (had[word] + UNSEEN) / (of[word] + 2.0 * UNSEEN) for word in of}


@cache
def _counted(_without: frozenset[str]) -> tuple[Mapping[tuple[str, str], float], Mapping[str, float]]:
    """Cases by symptom and cause, and by symptom."""
    counts: Counter[tuple[str, str]] = Counter()
    heard: Counter[str] = Counter()
    for case in (c for c in cases() if c.causes):
        for symptom in case.symptoms:
            heard[symptom] += case.weight  # type: ignore[assignment]
            for cause in case.causes:
                counts[symptom, cause] += case.share  # type: ignore[assignment]
    return counts, heard


def _with_group(ours: Mapping[str, float], causes: Iterable[str], share: float) -> dict[str, float]:
    """Half by our counts, half by theirs: the group's part of all, divided inside it and outside as ours are."""
    members = set(causes) & set(ours)
    inside, whole = math.fsum(ours[c] for c in members), math.fsum(ours.values())
    wanted = (inside + share * whole) / 2.0
    factor, rest = wanted / inside, (whole - wanted) / (whole - inside)
    return {c: rate * (factor if c in members else rest) for c, rate in ours.items()}


@cache
def published() -> tuple[dict[str, Any], ...]:
    """Fault tables that others have counted, each with its source."""
    folder = files("stallwise.knowledge") / "published"
    return tuple(
        tomllib.loads(path.read_text(encoding="utf-8"))
        for path in sorted((p for p in folder.iterdir() if p.name.endswith(".toml")), key=lambda p: p.name)
    )
