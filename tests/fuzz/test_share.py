"""A share of the fuzzing in every gate: the same cases each time, and none of what must never happen."""

from __future__ import annotations

import random

import pytest

from stallwise.doctor import reading
from stallwise.evidence import contained
from tests.fuzz.harness import run, seeds
from tests.fuzz.mutations import mutated

CASES = 120


@pytest.fixture(autouse=True)
def as_users_run_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STALLWISE_CACHE", "off")
    monkeypatch.delenv("STALLWISE_DEBUG", raising=False)
    monkeypatch.setattr(contained, "failure_of", contained.failure_of)  # the harness watches it; put back afterwards
    monkeypatch.setattr(reading, "failure_of", reading.failure_of)


def test_damaged_inputs_never_break_the_run() -> None:
    files = seeds([])
    assert len(files) > 50
    found = run(CASES, 20261115, files)
    assert found.cases == CASES
    assert found.answered > CASES / 3
    assert found.failures == 0, found.examples


def test_damage_is_the_same_each_time() -> None:
    files = seeds([])
    for number in range(30):
        first, second = (
            mutated(random.Random(number), files[number].read_bytes(), files[-1].read_bytes()) for _ in range(2)
        )
        assert first == second


def test_the_harness_sees_what_it_looks_for(monkeypatch: pytest.MonkeyPatch) -> None:
    from tests.fuzz import harness

    def broken(*paths: str, **options: object) -> None:
        raise KeyError("x")

    monkeypatch.setattr(harness, "diagnose", broken)
    assert run(3, 1, seeds([])).escapes == 3
