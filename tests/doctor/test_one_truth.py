"""Gains and accounts are of one truth: no fix promises more than its account may hold, unless it says where the rest comes from."""

from __future__ import annotations

from pathlib import Path

import pytest

from stallwise.doctor.examine import diagnose
from stallwise.doctor.rank import rank
from stallwise.errors import UnreadableInput
from stallwise.evidence.fact import Source
from stallwise.evidence.ledger import Account, Ledger
from stallwise.findings.finding import Finding, Gain
from stallwise.render.json import to_dict
from stallwise.render.phrases import account_ends, worth
from stallwise.render.text import to_text
from tests.shared_data import REPO, SHARED

ROUNDING = 1.0005
MOST_BYTES = 6_000_000  # of a packed trace: larger ones only repeat what these show, and take minutes


def traces() -> list[Path]:
    """One folder or file for each bundled and shared trace."""
    found = [*sorted((REPO / "examples" / "traces").iterdir())]
    h200 = SHARED / "data" / "h200"
    found += [trace.parent for part in ("train", "more") for trace in sorted(h200.glob(f"{part}/*/trace.json.gz"))]
    found += sorted(h200.glob("profiler_cost/*.json.gz")) + sorted(h200.glob("programs/*/bundle"))
    found += sorted((SHARED / "data" / "traces").rglob("*.json.gz"))
    return [path for path in found if path.is_dir() or path.stat().st_size < MOST_BYTES]


def name_of(path: Path) -> str:
    return "/".join(path.parts[-2:])


@pytest.mark.parametrize("path", traces(), ids=name_of)
def test_no_gain_exceeds_its_account_unless_it_says_so(path: Path) -> None:
    try:
        diagnosis = diagnose(str(path), cache=False)
    except UnreadableInput:
        return  # not a trace of a run: nothing is promised
    ledger = diagnosis.ledger
    if ledger is None or ledger.unit == "kernel":
        return
    for finding in diagnosis.findings:
        if finding.gain is None or finding.account is None:
            continue
        room = ledger.high_s(finding.account) + finding.gain.beside_s
        assert finding.gain.high_s <= min(room, ledger.whole_s) * ROUNDING, finding.cause
        for fix in finding.fixes:
            assert fix.gain is None or fix.gain.high_s <= finding.gain.high_s * ROUNDING, fix.action
        outside = sum(s for a, s in ledger.seconds.items() if a is not finding.account)
        assert finding.gain.beside_s <= outside * ROUNDING, finding.cause


SECONDS = {Account.COMPUTE: 0.05, Account.INPUT_WAIT: 0.04, Account.LAUNCH_GAP: 0.01}
RANGES = {Account.INPUT_WAIT: (0.032, 0.046)}


def ranked(gain: Gain, clean_step_s: float | None = 0.1) -> tuple[Gain, Ledger]:
    ledger = Ledger(SECONDS, Source("trace.json"), clean_step_s=clean_step_s, ranges=RANGES)
    finding = Finding("The GPU waits.", 0.9, (), cause="input-starved", account=Account.INPUT_WAIT, gain=gain)
    capped = rank([finding], ledger)[0].gain
    assert capped is not None
    return capped, ledger


def test_a_gain_reaches_as_far_as_its_account() -> None:
    gain, ledger = ranked(Gain(0.032, 0.06, "replayed: x", likely_s=0.04))
    assert gain == Gain(0.032, 0.046, "replayed: x", likely_s=0.04)
    assert account_ends(ledger, Account.INPUT_WAIT) == "32.0 to 46.0 ms"
    assert ledger.whole_ends_s == pytest.approx((0.092, 0.106))


def test_what_comes_out_of_other_accounts_is_told() -> None:
    gain, ledger = ranked(Gain(0.04, 0.06, "replayed: x", likely_s=0.05))
    assert gain.high_s == pytest.approx(0.056) and gain.beside_s == pytest.approx(0.01)
    assert worth(gain, ledger).endswith("up to 10.0 ms of it from other accounts")


def test_one_rank_of_many_wins_nothing_outside_of_its_account() -> None:
    gain, _ = ranked(Gain(0.04, 0.06, "replayed: x", likely_s=0.05), clean_step_s=None)
    assert gain.high_s == pytest.approx(0.046) and not gain.beside_s


def test_the_report_tells_the_account_with_its_range() -> None:
    diagnosis = diagnose(str(REPO / "examples" / "traces" / "loader_slow"), cache=False)
    ledger, first = diagnosis.ledger, diagnosis.first
    assert ledger is not None and first is not None and first.gain is not None
    told = account_ends(ledger, Account.INPUT_WAIT)
    assert told and f"({told})" in " ".join(to_text(diagnosis).split())
    assert to_dict(diagnosis)["ledger"]["account_ranges"]["input wait"][1] >= first.gain.high_s
