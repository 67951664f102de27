"""Base rates: how often a cause is behind a complaint, from counts.

Under each symptom the cases are counted, a case that allows several causes counting in parts for each. Where a symptom has few
cases its rates lean on how often the cause is seen at all, among those that declare the symptom; how much, was fitted. How
often the parts of a machine fail nobody's issue tracker tells, nor what slows jobs in which nothing is broken, so
`published/*.toml` has its say there, each table under the symptoms it was counted under: faults, and groups of causes.
"""

from __future__ import annotations

import math
import tomllib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from stallwise.findings.symptom import Symptom
from stallwise.knowledge.cases import cases, left_out
from stallwise.knowledge.fitted import fitted

SEEN_BESIDE = 0.5  # case: every cause that has a rule was met by somebody, though not by these cases


@dataclass(frozen=True, slots=True)
class Counted(Mapping[Symptom, float]):
    """The base rates of one cause under the symptoms that it declares, as the cases that count at the moment have them."""

    cause: str
    symptoms: tuple[Symptom, ...]
    rivals: Callable[[Symptom], frozenset[str]]  # every cause that can be behind a symptom

    def __getitem__(self, symptom: Symptom) -> float:
        if symptom not in self.symptoms:
            raise KeyError(symptom)
        return rates(symptom.name, self.rivals(symptom))[self.cause]

    def __contains__(self, symptom: object) -> bool:
        return symptom in self.symptoms  # without counting: counting asks everybody what they declare

    def __iter__(self) -> Iterator[Symptom]:
        return iter(self.symptoms)

    def __len__(self) -> int:
        return len(self.symptoms)


def rates(symptom: str, among: frozenset[str]) -> Mapping[str, float]:
    """P(cause | somebody complains of this), `among` the causes that can be behind it."""
    return _rates(left_out(), symptom, among)


@cache
def _rates(_without: frozenset[str], symptom: str, among: frozenset[str]) -> Mapping[str, float]:
    overall = _overall(_without, symptom)
    lean = fitted().rate_lean
    heard = [(c.weight, c.causes) for c in cases() if symptom in c.symptoms and c.causes]
    counted = math.fsum(weight for weight, _ in heard)
    counts: Counter[str] = Counter()
    for weight, causes in heard:
        for cause in causes:
            counts[cause] += weight / len(causes)  # type: ignore[assignment]
    mass = math.fsum(overall[c] + SEEN_BESIDE for c in among)
    ours = {c: (counts[c] + lean * (overall[c] + SEEN_BESIDE) / mass) / (counted + lean) for c in among}
    for table in (t for t in published() if "group" in t and symptom in t["under"]):
        for group in table["group"]:
            ours = _with_group(ours, group["causes"], group["share"])
    return ours


def _with_group(ours: Mapping[str, float], causes: Iterable[str], share: float) -> dict[str, float]:
    """Half by our counts, half by theirs: the group's part of all, divided inside it and outside as ours are."""
    members = set(causes) & set(ours)
    inside, whole = math.fsum(ours[c] for c in members), math.fsum(ours.values())
    wanted = (inside + share * whole) / 2.0
    factor, rest = wanted / inside, (whole - wanted) / (whole - inside)
    return {c: rate * (factor if c in members else rest) for c, rate in ours.items()}


@cache
def _overall(_without: frozenset[str], symptom: str) -> Counter[str]:
    """How often each cause is seen at all; causes that a table counts under the symptom share their part half by it."""
    overall: Counter[str] = Counter()
    for case in cases():
        for cause in case.causes:
            overall[cause] += 1.0 / len(case.causes)  # type: ignore[assignment]
    for table in (t for t in published() if "counts" in t and symptom in t["under"]):
        listed = table["counts"]
        ours, theirs = math.fsum(overall[c] for c in listed), math.fsum(listed.values())
        for cause, count in listed.items():
            overall[cause] = (overall[cause] + ours * count / theirs) / 2.0
    return overall


@cache
def published() -> tuple[dict[str, Any], ...]:
    """Fault tables that others have counted, each with its source."""
    folder = files("stallwise.knowledge") / "published"
    return tuple(
        tomllib.loads(path.read_text(encoding="utf-8"))
        for path in sorted((p for p in folder.iterdir() if p.name.endswith(".toml")), key=lambda p: p.name)
    )
