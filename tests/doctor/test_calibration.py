"""How sure answers are against how often they are right, over every known case.

Run with -s to see the table. Answers given with 80 to 100% must be right at least 85% of the time.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import NamedTuple

import pytest

from stallwise.doctor.examine import diagnose
from stallwise.errors import StallwiseError
from stallwise.findings.diagnosis import Diagnosis
from tests.shared_data import shared

BINS = ((0.0, 0.4), (0.4, 0.6), (0.6, 0.8), (0.8, 1.01))
SURE, RIGHT_WHEN_SURE = 0.8, 0.85
ENOUGH = 20  # sure answers below which the share says nothing
MAX_BYTES = 2 << 20  # larger traces and many ranks have their own tests; this one must stay quick
MOST_RANKS = 4


class Answer(NamedTuple):
    case: str
    said: str
    probability: float
    right: bool


def probability_of(diagnosis: Diagnosis, cause: str) -> float:
    """What a reader would take as the answer's probability."""
    if cause == "none":
        return next((h.probability for h in diagnosis.hypotheses if h.cause == "none"), 0.5)
    stated = [f.confidence for f in diagnosis.findings if f.cause == cause]
    stated += [h.probability for h in diagnosis.hypotheses if h.cause == cause]
    return max(stated, default=0.0)


def answers() -> list[Answer]:
    """The first answer of each known case that is small enough."""
    found: list[Answer] = []
    cache: dict[tuple[str, ...], Diagnosis | None] = {}
    for name in ("expect_cases.jsonl", "expect.jsonl"):
        for line in shared("checks", name).read_text(encoding="utf-8").splitlines():
            case = json.loads(line)
            paths = [shared("data", *p.split("/")) for p in case["paths"]]
            if sum(_size(p) for p in paths) > MAX_BYTES or _ranks(paths) > MOST_RANKS:
                continue
            key = tuple(map(str, paths))
            if key not in cache:
                try:
                    cache[key] = diagnose(*key, cache=False)
                except StallwiseError:
                    cache[key] = None
            diagnosis = cache[key]
            if diagnosis is not None:
                found += _answer(case, diagnosis)
    return found


def _answer(case: dict[str, object], diagnosis: Diagnosis) -> list[Answer]:
    accept, name = case["accept"], str(case["id"])
    assert isinstance(accept, list)
    if "kernel" not in case:
        said = diagnosis.ranked[0] if diagnosis.ranked else ""
        return [Answer(name, said, probability_of(diagnosis, said), said in accept)]
    mine = [f for f in diagnosis.findings if (f.scope.kernel or "").startswith(str(case["kernel"]))]
    if not mine:
        return [Answer(name, "none", 0.8, "none" in accept)]
    return [Answer(name, mine[0].cause, mine[0].confidence, mine[0].cause in accept)]


def _ranks(paths: list[Path]) -> int:
    return sum(len(list(p.rglob("*.json.gz"))) for p in paths if p.is_dir())


def _size(path: Path) -> int:
    return sum(p.stat().st_size for p in path.rglob("*") if p.is_file()) if path.is_dir() else path.stat().st_size


@pytest.mark.shared
def test_sure_answers_are_right() -> None:
    found = answers()
    print(f"\n{'stated':>12} {'answers':>8} {'right':>8}")
    for low, high in BINS:
        here = [a for a in found if low <= a.probability < high]
        share = f"{sum(a.right for a in here) / len(here):.0%}" if here else "-"
        print(f"{low:5.0%} to {min(high, 1.0):4.0%} {len(here):8d} {share:>8}")
    sure = [a for a in found if a.probability >= SURE]
    wrong = [f"{a.case}: {a.said} at {a.probability:.0%}" for a in sure if not a.right]
    print("sure and wrong:", "; ".join(wrong) or "none")
    assert len(sure) >= ENOUGH
    assert sum(a.right for a in sure) / len(sure) >= RIGHT_WHEN_SURE, wrong
