"""A gain is never larger than the time it removes, unless it says where the rest comes from. Every case: tests/consistency."""

from __future__ import annotations

import pytest

from stallwise.doctor.examine import diagnose
from stallwise.doctor.findings.finding import Finding, Fix, Gain
from stallwise.doctor.rank import rank
from stallwise.evidence.fact import Source
from stallwise.evidence.ledger import Category, Ledger
from stallwise.render.blocks import plain
from stallwise.render.html import to_html
from stallwise.render.phrases import category_ends, worth
from stallwise.render.text import to_text
from tests.shared_data import REPO

SECONDS = {Category.COMPUTE: 0.05, Category.INPUT_WAIT: 0.04, Category.LAUNCH_GAP: 0.01}
RANGES = {Category.INPUT_WAIT: (0.032, 0.046)}


def ranked(gain: Gain, clean_step_s: float | None = 0.1) -> tuple[Gain, Ledger]:
    ledger = Ledger(SECONDS, Source("trace.json"), clean_step_s=clean_step_s, ranges=RANGES)
    finding = Finding("The GPU waits.", 0.9, (), cause="input-starved", category=Category.INPUT_WAIT, gain=gain)
    capped = rank([finding], ledger)[0].gain
    assert capped is not None
    return capped, ledger


def test_a_gain_is_no_larger_than_the_time_it_removes() -> None:
    gain, ledger = ranked(Gain(0.032, 0.06, "replayed: x", likely_s=0.04))
    assert gain == Gain(0.032, 0.04, "replayed: x", likely_s=0.04)
    assert str(category_ends(ledger, Category.INPUT_WAIT)) == "32.0 to 46.0 ms"
    assert ledger.whole_ends_s == pytest.approx((0.092, 0.106))


def test_what_comes_out_of_other_categories_is_told() -> None:
    gain, ledger = ranked(Gain(0.04, 0.06, "replayed: x", likely_s=0.05))
    assert gain.high_s == pytest.approx(0.05) and gain.beside_s == pytest.approx(0.01)
    assert plain(worth(gain, ledger)).endswith("up to 10.0 ms of it from other categories")


def test_one_rank_of_many_wins_nothing_outside_of_its_category() -> None:
    gain, _ = ranked(Gain(0.04, 0.06, "replayed: x", likely_s=0.05), clean_step_s=None)
    assert gain.high_s == gain.likely_s == pytest.approx(0.04) and not gain.beside_s


def test_a_trial_with_other_steps_wins_the_same_part_of_this_one() -> None:
    measured = Gain(0.016, 0.024, "measured: x", likely_s=0.02, step_s=0.05)
    gain, ledger = ranked(measured)
    assert (gain.low_s, gain.likely_s, gain.high_s) == pytest.approx((0.032, 0.04, 0.048))
    assert gain.beside_s == pytest.approx(0.008)
    assert "(1.47-1.92x)" in plain(worth(gain, ledger))


def test_no_fix_wins_more_than_its_finding() -> None:
    ledger = Ledger(SECONDS, Source("trace.json"), clean_step_s=0.1)
    whole = Gain(0.0, 0.09, "all of it")
    finding = Finding("x", 0.9, (), cause="x", category=Category.LAUNCH_GAP, gain=whole, fixes=(Fix("do", whole),))
    fix = rank([finding], ledger)[0].fixes[0]
    assert fix.gain is not None and fix.gain.high_s == pytest.approx(0.01)


def test_the_demo_promises_what_its_wait_holds_and_draws_the_replayed_step() -> None:
    diagnosis = diagnose(str(REPO / "examples" / "traces" / "loader_slow"), cache=False)
    ledger, first = diagnosis.ledger, diagnosis.first
    assert ledger is not None and first is not None and first.gain is not None and first.gain.likely_s is not None
    told = category_ends(ledger, Category.INPUT_WAIT)
    assert told and f"({told})" in " ".join(to_text(diagnosis).split())
    wait_s = ledger.seconds[Category.INPUT_WAIT]
    assert wait_s <= first.gain.high_s <= wait_s * 1.02  # the replay finds 1 ms in other accounts, and says so
    assert first.gain.beside_s == pytest.approx(first.gain.high_s - wait_s)
    assert ledger.whole_s - first.gain.likely_s > ledger.seconds[Category.COMPUTE]
    assert "replayed 56.3 ms (at worst 68.0 ms)" in to_html(diagnosis)
