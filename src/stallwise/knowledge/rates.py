"""Base rates: how often a cause is behind a complaint, from counts.

Under each symptom the cases are counted, a case that allows several causes counting in parts for each. Where a symptom has few
cases its rates lean on how often the cause is seen at all, among those that declare the symptom; how much, was fitted. How
often the parts of a machine fail nobody's issue tracker tells, so `published/*.toml` has its say there.
"""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.resources import files
from typing import Any

from stallwise.knowledge.cases import cases, left_out
from stallwise.knowledge.fitted import fitted

SEEN_BESIDE = 0.5  # case: every cause that has a rule was met by somebody, though not by these cases


def rate(cause: str, symptom: str, among: frozenset[str]) -> float:
    """P(cause | somebody complains of this), `among` the causes that can be behind it."""
    return _rates(left_out(), symptom, among).get(cause, 0.0)


@cache
def _rates(_without: frozenset[str], symptom: str, among: frozenset[str]) -> Mapping[str, float]:
    overall = _overall(_without)
    lean = fitted().rate_lean
    heard = [(c.weight, c.causes) for c in cases() if symptom in c.symptoms]
    counted = sum(weight for weight, _ in heard)
    counts: Counter[str] = Counter()
    for weight, causes in heard:
        for cause in causes:
            counts[cause] += weight / len(causes)  # type: ignore[assignment]
    mass = sum(overall[c] + SEEN_BESIDE for c in among)
    return {c: (counts[c] + lean * (overall[c] + SEEN_BESIDE) / mass) / (counted + lean) for c in among}


@cache
def _overall(_without: frozenset[str]) -> Counter[str]:
    """How often each cause is seen at all. Causes that published tables count share their part half by ours, half by theirs."""
    overall = _shares(case.causes for case in cases())
    for table in published():
        listed = table["counts"]
        ours, theirs = sum(overall[c] for c in listed), sum(listed.values())
        for cause, count in listed.items():
            overall[cause] = (overall[cause] + ours * count / theirs) / 2.0
    return overall


def _shares(told: Iterable[tuple[str, ...]]) -> Counter[str]:
    found: Counter[str] = Counter()
    for causes in told:
        for cause in causes:
            found[cause] += 1.0 / len(causes)  # type: ignore[assignment]
    return found


@cache
def published() -> tuple[dict[str, Any], ...]:
    """Fault tables that others have counted, each with its source."""
    folder = files("stallwise.knowledge") / "published"
    return tuple(
        tomllib.loads(path.read_text(encoding="utf-8"))
        for path in sorted((p for p in folder.iterdir() if p.name.endswith(".toml")), key=lambda p: p.name)
    )
