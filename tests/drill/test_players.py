"""The rubric is fair: method wins, reflexes lose, and a right guess without method is at best a pass."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from tests.drill.players import expert, novice, parrot

SEEDS = range(1001, 1101)


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Counter[str]]:
    folder: Path = tmp_path_factory.mktemp("rounds")
    rows = {play.__name__: Counter(play(seed, folder).word for seed in SEEDS) for play in (expert, novice, parrot)}
    print(f"\n{'player':8} {'strong':>6} {'pass':>6} {'fail':>6}   of {len(SEEDS)}")
    for name, counts in rows.items():
        print(f"{name:8} {counts['strong pass']:6d} {counts['pass']:6d} {counts['fail']:6d}")
    return rows


def test_an_expert_gets_a_strong_pass(table: dict[str, Counter[str]]) -> None:
    assert table["expert"]["strong pass"] >= 95


def test_a_parrot_fails(table: dict[str, Counter[str]]) -> None:
    assert table["parrot"]["fail"] >= 95


def test_a_novice_gets_a_pass_at_most(table: dict[str, Counter[str]]) -> None:
    assert table["novice"]["strong pass"] == 0
