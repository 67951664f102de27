"""Knowledge is counted: cases have owners, words have two witnesses, and one project can be left out."""

from __future__ import annotations

from collections import defaultdict

from stallwise.knowledge.cases import WEIGHTS, cases, leaving_out
from stallwise.knowledge.fitted import fitted, told
from stallwise.knowledge.vote import votes
from stallwise.rules import all_rules


def test_every_case_names_its_project_and_known_causes() -> None:
    causes = {r.cause for r in all_rules()}
    assert len(cases()) > 250
    for case in cases():
        assert case.project and case.kind in WEIGHTS
        assert set(case.causes) <= causes


def test_composed_cases_weigh_less_than_captures() -> None:
    assert WEIGHTS["composed"] < WEIGHTS["lines"] <= WEIGHTS["capture"]


def test_every_counted_word_has_two_witnesses() -> None:
    users: dict[str, set[str]] = defaultdict(set)
    for case in cases():
        for word in case.words:
            users[word].add(case.project)
    assert not [w for w, projects in users.items() if len(projects) < 2]


def test_a_project_can_be_left_out() -> None:
    project = cases()[0].project
    with leaving_out(project):
        assert all(c.project != project for c in cases())
    assert any(c.project == project for c in cases())


def test_a_case_votes_for_its_own_cause() -> None:
    case = next(c for c in cases() if len(c.causes) == 1 and len(c.words) > 30)
    score, nearest = votes(case.words)
    assert nearest[0].id == case.id
    assert max(score, key=lambda c: score[c]) == case.causes[0]


def test_surer_scores_are_right_more_often() -> None:
    known = fitted()
    assert list(known.frequencies) == sorted(known.frequencies)
    assert known.frequency(1.0) < 1.0


def test_told_phrases_are_of_known_causes() -> None:
    assert set(told()) <= {r.cause for r in all_rules()}
