"""The room a promise leaves: from measured fixes, pooled, never a workload's own."""

from __future__ import annotations

from pathlib import Path

import pytest

from stallwise.evidence.catalog.gains import OF_CHANGE
from stallwise.physics.costs import gain_doubt
from stallwise.physics.costs.gain_doubt import Ratio, doubt_of, learn, lost_in, rows
from stallwise.physics.costs.host_ways import autocast_ratio, checkpoint_beside_ratio


@pytest.mark.parametrize("change", OF_CHANGE)
def test_every_change_has_a_range_that_means_something(change: str) -> None:
    low, high = doubt_of(change)
    assert 0.5 < low < 1.1 < high < 2.0
    assert high <= 2.0 * low


def test_a_row_is_of_a_change_that_can_be_replayed() -> None:
    assert {r.change for r in rows()} <= set(OF_CHANGE)
    assert all(r.ratio > 0 for r in rows())


def test_trials_of_ones_own_join_where_a_file_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "gains.csv"
    assert learn(file, []) == 0 and not file.exists()
    assert learn(file, [Ratio("fuse", "train-1", 0.8), Ratio("fused-optimizer", "train-1", -0.26)]) == 2
    assert learn(file, [Ratio("fuse", "train-1", 0.9)]) == 1  # the same job again replaces its row
    before = len(rows())
    file.write_text(file.read_text() + "fuse,torn\nfuse,odd,local,nan\n")
    monkeypatch.setenv(gain_doubt.LOCAL, str(file))
    for cached in (rows, doubt_of, lost_in):
        cached.cache_clear()
    try:
        assert len(rows()) == before + 2 and Ratio("fuse", "train-1", 0.9) in rows()
        lost, of = lost_in("fused-optimizer")
        assert lost == 1 and of > 1 and lost_in("fuse")[0] == 0
        assert doubt_of("fused-optimizer")[0] > 0  # a loss moves no range: it is stated
    finally:
        monkeypatch.delenv(gain_doubt.LOCAL)
        for cached in (rows, doubt_of, lost_in):
            cached.cache_clear()


def test_a_workload_can_be_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        gain_doubt, "rows", lambda: (*(Ratio("fuse", f"w{k}", 0.8) for k in range(8)), Ratio("fuse", "odd", 1.6))
    )
    fresh = doubt_of.__wrapped__
    assert fresh("fuse", "odd")[1] < fresh("fuse")[1]
    assert fresh("fuse", "odd")[0] == pytest.approx(0.75, abs=0.1)


def test_few_rows_are_drawn_towards_all_others(monkeypatch: pytest.MonkeyPatch) -> None:
    others = tuple(Ratio("graphs", f"w{k}", 1.0) for k in range(20))
    monkeypatch.setattr(gain_doubt, "rows", lambda: (*others, Ratio("fuse", "one", 1.8)))
    low, high = doubt_of.__wrapped__("fuse")
    assert 1.0 < (low * high) ** 0.5 < 1.3


def test_another_fix_than_was_replayed_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = tuple(Ratio("no-sync", f"w{k}", 1.0) for k in range(5))
    monkeypatch.setattr(gain_doubt, "rows", lambda: plain)
    without = doubt_of.__wrapped__("no-sync")
    monkeypatch.setattr(gain_doubt, "rows", lambda: (*plain, Ratio("no-sync", "rewritten", 30.0)))
    assert doubt_of.__wrapped__("no-sync") == without


def test_ways_of_calling_a_layer_cost_the_host_more_than_plain_calls() -> None:
    assert 1.1 < autocast_ratio() < 1.5
    assert 0.2 < checkpoint_beside_ratio() < 0.8
