"""Accounts in free text: right ones pass in any words, lists, wrong ones and traps do not; denial and order hold."""

from __future__ import annotations

import json
import runpy
import sys
from pathlib import Path

import pytest

from stallwise.drill.claims.account import account_of, challenge_for, classic
from stallwise.drill.claims.generic import account
from stallwise.drill.claims.reader import claims_in, is_prose
from stallwise.drill.claims.sums import false_sums
from stallwise.drill.claims.weigh import MISSING, PASS, weigh
from stallwise.drill.generate import incident
from stallwise.drill.incident import CLASSICS

ACCOUNTS = [
    (kind, int(scenario), text)
    for line in (Path(__file__).parent / "accounts.tsv").read_text(encoding="utf-8").splitlines()[2:]
    for kind, scenario, text in (line.split("\t"),)
]
MOST_WRONG = 0.05  # of the accounts that must not pass
LEAST_RIGHT = 0.9


def of(kind: str) -> list[tuple[int, str]]:
    return [(scenario, text) for k, scenario, text in ACCOUNTS if k == kind]


def first(kind: str) -> dict[int, str]:
    """Of each scenario."""
    return dict(reversed(of(kind)))


@pytest.mark.parametrize("kind", sorted({kind for kind, _, _ in ACCOUNTS}))
def test_right_accounts_pass_in_any_words_and_language_and_others_do_not(kind: str) -> None:
    passed, failed = [], []
    for scenario, text in of(kind):
        done = weigh(text, account(incident(scenario)))
        (passed if min(done.cause.level, done.fixes.level) >= PASS else failed).append(f"{scenario} {text[:60]} {done}")
    share = len(passed) / len(of(kind))
    print(f"\n{kind}: {share:.0%} of {len(of(kind))} pass")
    assert share >= LEAST_RIGHT if kind in ("right", "foreign") else share <= MOST_WRONG, failed or passed


def test_one_account_for_all_incidents_passes_at_none() -> None:
    for order in (range(1, CLASSICS + 1), range(CLASSICS, 0, -1)):
        text = " ".join(first("right")[n] for n in order)
        assert [n for n in order if weigh(text, account(incident(n))).cause.level] == []


@pytest.mark.parametrize(("scenario", "text"), of("trap"))
def test_a_trap_first_never_passes_the_remedies(scenario: int, text: str) -> None:
    done = weigh(text, account(incident(scenario)))
    assert done.fixes.level == MISSING and "trap" in done.fixes.why, done


@pytest.mark.parametrize(
    ("text", "denied"),
    [
        ("One node is slow and all others wait for it.", False),
        ("It is not the case that one node is slow.", True),
        ("A slow node is unlikely, and no single node is slow.", True),
        ("I doubt the loader; one slow node holds the others.", False),
        ("One node can't be slow since all report the same clocks.", True),
    ],
)
def test_denial_holds_before_and_behind(text: str, denied: bool) -> None:
    claims = claims_in(text, (account_of(classic(2)).cause,))
    assert claims and all(c.denied for c in claims) == denied


def test_a_contradiction_is_no_cause() -> None:
    text = "One node is slow. No node is slow, no single card is throttled, and it is not a straggler. I would drain the node."
    assert weigh(text, account_of(classic(2))).cause.level == MISSING


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("A bubble of 41% is less than the expected 22%.", "41% is not less than 22%"),
        ("MFU rose from 48 to 22 in an hour.", "the other direction"),
        ("We are at 180 of 650, so about 1.9x to gain.", "3.61 times, not 1.9x"),
        ("The sum is 32 * 8192 * 8192 * 2 = 8.6 GB on each rank.", "is not 8.6 GB"),
        ("340 ms is shorter than 61 ms.", "340 ms is not shorter than 61 ms"),
    ],
)
def test_numbers_that_refute_each_other_are_named(text: str, wrong: str) -> None:
    (found,) = false_sums(text)
    assert wrong in found


@pytest.mark.parametrize(
    "text",
    [
        "22% is less than the measured 41%, and the step went up from 5.6 ms to 45 ms.",
        "We are at 180 of 650, so 3.6x slower; 48/22 = 2.18 and 32*8192*8192*2 = 4.3 GB.",
        "3*4096^2*2 = 100 MB, that is 0.03 ms at 3.35 TB/s; 16 GB is more than 12 GB.",
    ],
)
def test_numbers_that_hold_are_left_alone(text: str) -> None:
    assert false_sums(text) == []


def test_what_was_not_read_is_named() -> None:
    known = account_of(classic(2))
    assert weigh("The weather is nice today and I like it a lot.", known).unread == ("cause", "fixes")
    assert weigh("One node is slow and all the others wait for it.", known).unread == ("fixes",)
    assert not is_prose("straggler, drain, per-rank, NCCL, thermal, ECC, PCIe, rail")


@pytest.mark.parametrize("number", range(1, CLASSICS + 1))
def test_every_follow_up_has_an_answer_that_only_arithmetic_gives(number: int) -> None:
    known = account_of(classic(number))
    assert len(known.challenges) >= 2 and sum(not c.when for c in known.challenges) == 1
    for asked in known.challenges:
        assert asked.number.accepts(asked.number.value) and not asked.number.accepts(1.3 * asked.number.value)
        assert asked.why
    assert challenge_for(known, "nothing of note").when == ""
    assert len(known.hints) >= 2 and known.traps and known.mechanisms and min(r for r, _ in known.fixes) <= 1


def test_the_bench_counts_accounts_and_shows_what_it_missed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    right, wrong = of("right")[0], of("wrong")[0]
    said = {"number_right": None, "trap_as_fix": False}
    lines = [
        json.dumps(
            {"id": i, "scenario": s, "text": t, "kind": "any", "cause_right": good, "first_fix_right": good, **said}
        )
        for i, (s, t), good in (("a", right, True), ("b", wrong, False), ("c", wrong, True))
    ]
    (tmp_path / "rows.jsonl").write_text("\n".join(lines), encoding="utf-8")
    monkeypatch.setattr(sys, "argv", ["drill_answers.py", str(tmp_path / "rows.jsonl"), "--show"])
    runpy.run_path(str(Path(__file__).parents[2] / "bench" / "drill_answers.py"), run_name="__main__")
    shown = capsys.readouterr().out
    assert "n 3  pass 1" in shown and "missed first_fix_right 1" in shown and "c S" in shown and "b S" not in shown
