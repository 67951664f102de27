"""What clues tell is counted, never typed, and what is stored is what `make knowledge` would write."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType
from typing import get_args

import pytest

from stallwise.findings.clue import Tells, yes
from stallwise.knowledge.cases import cases, leaving_out
from stallwise.knowledge.clues import SIDES, listed, telling
from stallwise.knowledge.fitted import fitted
from stallwise.knowledge.rates import Often, _words
from stallwise.rules import all_rules, declared

ROOT = Path(__file__).parents[2]
ROWS = {(row["cause"], row["says"]): row for row in listed()}
CLUES = {(rule.cause, clue.says): clue for rule in all_rules() for clue in rule.clues}
SAMPLED = 15  # every so many of the incidents in this repository
DRILLED = ("input-starved", "kv-cache-preemption", "oom-logits")


@pytest.fixture(scope="module")
def bench() -> ModuleType:
    """The command itself."""
    spec = importlib.util.spec_from_file_location("knowledge_bench", ROOT / "bench" / "knowledge.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules.setdefault("knowledge_bench", module)
    spec.loader.exec_module(module)
    return module


def test_no_rule_types_a_ratio_or_a_rate() -> None:
    """Rules hold words alone: what a word comes to is counted."""
    for rule in all_rules():
        assert {clue.tells for clue in rule.clues} <= set(get_args(Tells)), rule.cause
    assert {word for causes in declared().values() for word in causes.values()} <= set(get_args(Often))


def test_every_clue_has_its_row_and_one_name() -> None:
    assert sum(len(rule.clues) for rule in all_rules()) == len(CLUES), "two clues of one cause say the same"
    assert {key: row["tells"] for key, row in ROWS.items()} == {k: c.tells for k, c in CLUES.items()}, "make knowledge"


def test_rows_name_known_cases_on_the_side_of_their_truth() -> None:
    known = {case.id: case for case in cases()}
    for (cause, _), row in ROWS.items():
        for side in SIDES:
            for case in row.get(side, ()):
                assert (cause in known[case].causes) is side.endswith("_with"), (cause, case)


def test_rows_are_what_the_command_would_write(bench: ModuleType) -> None:
    incidents = ROOT / "tests" / "incidents" / "improve"
    index = (json.loads(line) for line in (incidents / "index.jsonl").read_text(encoding="utf-8").splitlines())
    known = {case.id: case for case in cases()}
    for case in [known[row["id"]] for row in index if row["id"] in known and "unclear" not in row["accept"]][::SAMPLED]:
        evidence = bench.gather([str(incidents / case.id)], workers=1, cache=False)
        bench.measure_evidence(evidence)
        told = {(c, k.says, bench.side_of(held, c in case.causes)) for c, k, held in bench.outcomes_in(evidence)}
        assert told == {(*key, side) for key, row in ROWS.items() for side in SIDES if case.id in row.get(side, ())}, (
            f"{case.id}: make knowledge"
        )


@pytest.mark.parametrize("cause", DRILLED)
def test_drills_are_counted_as_they_are_planted(bench: ModuleType, cause: str) -> None:
    found = {key: [0, 0] for key in ROWS if key[0] == cause}
    for evidence in bench.planted(cause):
        for of, clue, held in bench.outcomes_in(evidence):
            if of == cause:
                found[of, clue.says][not held] += 1
    assert found == {key: ROWS[key]["drilled"][:2] for key in found}, "make knowledge"


def test_words_tell_in_their_order() -> None:
    """As their authors mean them; nobody typed it."""
    new = {
        word: telling("a new cause", yes(CLUES[next(iter(CLUES))].reads[0], word, "new")) for word in get_args(Tells)
    }
    by_word = [new[word].ratio for word in ("decisive", "strong", "fair", "hint", "against")]
    assert by_word == sorted(by_word, reverse=True)
    assert new["against"].ratio < 1.0 < new["hint"].ratio
    assert all(told.otherwise == 1.0 for word, told in new.items() if word.endswith(" when seen"))
    often = [_words(frozenset(), declared)[word] for word in get_args(Often)]
    assert often == sorted(often, reverse=True)


def test_without_the_projects_that_saw_it_a_clue_tells_less() -> None:
    key = ("shm-too-small", "shared memory could not be allocated")
    saw = {case.project for case in cases() if case.id in ROWS[key]["held_with"]}
    whole = telling(key[0], CLUES[key]).ratio
    with leaving_out(*saw):
        assert telling(key[0], CLUES[key]).ratio < whole


def test_a_clue_of_few_cases_borrows_and_one_of_many_does_not() -> None:
    few = CLUES["tensor-cores-unused", "the precision changed"]
    assert telling("tensor-cores-unused", few).ratio == pytest.approx(telling("a new cause", few).ratio, rel=0.05)
    many = CLUES["client-limited", "requests wait"]
    assert telling("client-limited", many).ratio < 0.7 * telling("a new cause", many).ratio
    assert fitted().clue_lean > 0.0
