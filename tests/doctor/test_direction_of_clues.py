"""Counts say how much a clue tells, never that it means the contrary."""

from __future__ import annotations

from stallwise.doctor.differential import clue_ratio
from stallwise.findings.clue import SPEAK_AGAINST
from stallwise.rules import all_rules


def test_no_clue_is_turned_around_by_what_was_counted() -> None:
    for rule in all_rules():
        for clue in rule.clues:
            held, denied = clue_ratio(rule.cause, clue, True), clue_ratio(rule.cause, clue, False)
            if clue.tells in SPEAK_AGAINST:
                assert held <= 1.0 <= denied, (rule.cause, clue.says)
            else:
                assert held >= 1.0, (rule.cause, clue.says)
