"""Accounts in free text: right ones pass in any words, lists, wrong ones and traps do not; denial and order hold."""

from __future__ import annotations

import json
import runpy
import sys
import tomllib
from pathlib import Path

import pytest

from stallwise.drill.claims.account import account_of, challenge_for, classic
from stallwise.drill.claims.reader import claims_in, is_prose
from stallwise.drill.claims.weigh import MISSING, PASS, weigh
from stallwise.drill.incident import CLASSICS

ACCOUNTS = tomllib.loads((Path(__file__).parent / "accounts.toml").read_text(encoding="utf-8"))["account"]


def of(kind: str) -> list[tuple[int, str]]:
    return [(a["scenario"], a["text"]) for a in ACCOUNTS if a["kind"] == kind]


@pytest.mark.parametrize(("scenario", "text"), of("right"))
def test_right_accounts_pass_in_cause_and_remedies(scenario: int, text: str) -> None:
    done = weigh(text, account_of(classic(scenario)))
    assert done.cause.level >= PASS and done.fixes.level >= PASS and done.numbers.level >= PASS, done
    assert not done.unread


@pytest.mark.parametrize(("scenario", "text"), [*of("wrong"), *of("list")])
def test_wrong_accounts_and_lists_do_not(scenario: int, text: str) -> None:
    done = weigh(text, account_of(classic(scenario)))
    assert min(done.cause.level, done.fixes.level) == MISSING, done


@pytest.mark.parametrize(("scenario", "text"), of("trap"))
def test_a_trap_first_never_passes_the_remedies(scenario: int, text: str) -> None:
    done = weigh(text, account_of(classic(scenario)))
    assert done.fixes.level == MISSING and done.trap_first, done


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
    rows = [("a", *right, "pass"), ("b", *wrong, "fail"), ("c", *wrong, "pass")]
    lines = [json.dumps({"id": i, "scenario": s, "text": t, "kind": "any", "expect": e}) for i, s, t, e in rows]
    (tmp_path / "rows.jsonl").write_text("\n".join(lines), encoding="utf-8")
    monkeypatch.setattr(sys, "argv", ["drill_answers.py", str(tmp_path / "rows.jsonl"), "--show"])
    runpy.run_path(str(Path(__file__).parents[2] / "bench" / "drill_answers.py"), run_name="__main__")
    said = capsys.readouterr().out
    assert "n   3  pass   1" in said and "c S2" in said and "b S2" not in said
