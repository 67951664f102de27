"""The scoring is fair: 180 scripted rounds of nine kinds of players over twenty incidents, in the order they deserve."""

from __future__ import annotations

from pathlib import Path
from statistics import mean

import pytest

from stallwise.drill.generate import incident
from stallwise.drill.incident import model_answer
from stallwise.drill.scoring import LEVELS, Score, quadratic
from tests.drill.players import PLAYERS

SEEDS = (*range(1, 9), *range(3001, 3013))  # the eight classics and twelve generated incidents
SAME_POINTS = 1.0  # terse and non-native say the same in other words


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Score]]:
    folder: Path = tmp_path_factory.mktemp("rounds")
    rows = {play.__name__: [play(seed, folder) for seed in SEEDS] for play in PLAYERS}
    print(f"\n{'player':11} {'mean':>6} {'worst':>6} {'best':>6}   " + " ".join(f"{w:>11}" for w in LEVELS))
    for name, scores in rows.items():
        points = [s.points for s in scores]
        words = " ".join(f"{sum(s.word == w for s in scores):11d}" for w in LEVELS)
        print(f"{name:11} {mean(points):6.1f} {min(points):6.1f} {max(points):6.1f}   {words}")
    return rows


def test_the_doctor_finds_every_classic_first(table: dict[str, list[Score]]) -> None:
    """Here, where their model answers are at hand already."""
    assert [n for n in range(1, 9) if model_answer(incident(n)).ranked[0] != incident(n).cause] == []


def average(table: dict[str, list[Score]], name: str) -> float:
    return mean(s.points for s in table[name])


def test_means_are_in_the_order_the_players_deserve(table: dict[str, list[Score]]) -> None:
    assert sum(map(len, table.values())) >= 120
    for better, worse in (
        ("expert", "terse"),
        ("terse", "hedger"),
        ("hedger", "shotgun"),
        ("shotgun", "bluffer"),
        ("bluffer", "parrot"),
    ):
        assert average(table, better) > average(table, worse), (better, worse)
    assert abs(average(table, "terse") - average(table, "non_native")) < SAME_POINTS


@pytest.mark.parametrize("name", ["bluffer", "parrot", "trap_taker", "silent"])
def test_nobody_passes_who_should_not(table: dict[str, list[Score]], name: str) -> None:
    assert [seed for seed, s in zip(SEEDS, table[name], strict=True) if s.level] == []


@pytest.mark.parametrize("name", ["expert", "terse", "non_native"])
def test_no_right_answer_fails_in_whatever_words(table: dict[str, list[Score]], name: str) -> None:
    assert [seed for seed, s in zip(SEEDS, table[name], strict=True) if s.level < 2] == []


def test_every_trap_is_called_by_its_name(table: dict[str, list[Score]]) -> None:
    assert all(s.trap and s.level == 0 for s in table["trap_taker"])
    assert not any(s.trap for s in table["expert"])


def test_asking_for_everything_costs_and_the_one_paper_is_the_best_play(table: dict[str, list[Score]]) -> None:
    for one, all_of_them in zip(table["terse"], table["shotgun"], strict=True):
        assert all_of_them.minutes > one.minutes == one.best_minutes
        assert all_of_them.points < one.points - 10


def test_a_level_says_what_the_next_ones_would_have_needed(table: dict[str, list[Score]]) -> None:
    for scores in table.values():
        for s in scores:
            assert [w for w, _ in s.needs] == list(LEVELS[s.level + 1 :])
            assert not s.needs or s.needs[0][1]


@pytest.mark.parametrize("truth", [0.05, 0.3, 0.5, 0.8, 0.99])
def test_no_report_pays_more_than_what_one_believes(truth: float) -> None:
    """A proper score: with belief b in one cause, the expected score is largest where b is reported."""

    def expected(report: float) -> float:
        rest = (1 - truth) / 8
        return truth * quadratic({"a": report}, "a", 9) + sum(
            rest * quadratic({"a": report}, f"x{i}", 9) for i in range(8)
        )

    def in_full(report: float) -> float:
        others = {f"x{i}": (1 - report) / 8 for i in range(8)}
        given = {"a": report, **others}
        return truth * quadratic(given, "a", 9) + sum((1 - truth) / 8 * quadratic(given, f"x{i}", 9) for i in range(8))

    reports = [i / 100 for i in range(101)]
    best = max(reports, key=in_full)
    assert best == pytest.approx(truth, abs=0.011)
    assert max(in_full(r) for r in reports) >= max(expected(r) for r in reports) - 1e-9
    assert quadratic({"a": 1.0}, "a", 9) == pytest.approx(1.0) and quadratic({"b": 1.0}, "a", 9) < -0.5
