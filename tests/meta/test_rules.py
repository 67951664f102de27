"""Every rule is documented, named after its cause, and known to the catalogue of quantities."""

from __future__ import annotations

from typing import get_args

import pytest

from stallwise.causes import all_rules
from stallwise.doctor.findings.clue import Strength
from stallwise.doctor.findings.rule import Rule
from stallwise.doctor.findings.symptom import Often
from stallwise.evidence.catalog import quantities

SECTIONS = ("## What it means", "## Why it costs", "## What else looks so", "## Fix", "## How the gain is found")


@pytest.mark.parametrize("rule", all_rules(), ids=lambda r: r.cause)
def test_a_rule_has_a_full_page(rule: Rule) -> None:
    assert rule.page.splitlines()[0].endswith(".")
    missing = [s for s in SECTIONS if s not in rule.page]
    assert not missing, f"{rule.cause} lacks {missing}"


@pytest.mark.parametrize("rule", all_rules(), ids=lambda r: r.cause)
def test_a_rule_reads_only_catalogued_quantities(rule: Rule) -> None:
    known = quantities()
    for quantity in (*rule.needs, *(q for clue in rule.clues for q in clue.reads)):
        assert known.get(quantity.name) is quantity


def test_how_often_a_cause_is_behind_a_symptom_is_a_word() -> None:
    for rule in all_rules():
        for symptom, often in rule.explains.items():
            assert often in get_args(Often), (rule.cause, symptom)


def test_what_a_clue_tells_is_a_word() -> None:
    """What the word comes to is fitted to cases, never typed."""
    for rule in all_rules():
        assert {clue.strength for clue in rule.clues} <= set(get_args(Strength)), rule.cause


def test_causes_are_unique() -> None:
    causes = [r.cause for r in all_rules()]
    assert len(causes) == len(set(causes))


@pytest.mark.parametrize("rule", all_rules(), ids=lambda r: r.cause)
def test_nothing_is_heard_twice(rule: Rule) -> None:
    reads = [frozenset(q.name for q in clue.reads) for clue in rule.clues]
    twice = {tuple(sorted(r)) for r in reads if reads.count(r) > 1}
    assert not twice, "two clues on the same quantities weigh one observation as two"
