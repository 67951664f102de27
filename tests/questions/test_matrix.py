"""Every question of the matrix, in each of its wordings: the right cause, number, artifact, order of fixes and trap; no all-clear.

At first sight, before any wording was looked at, 606 of 1,257 were right: 599 of the 735 that complain of a run (none of them was
called healthy), and 7 of the 522 that ask what something is or costs, since pages were then found by name alone.
"""

from __future__ import annotations

import os
from collections import Counter

import pytest
from tests.questions.asking import LEAST_COMPLAINTS, LEAST_LOOKED_UP, Walk, questions, walk

LEAST_ITEMS, LEAST_WORDINGS = 320, 960


@pytest.fixture(scope="module")
def complaints() -> Walk:
    every = 1 if os.environ.get("STALLWISE_FULL") else 4
    return walk(tuple(q for q in questions() if q.by == "diagnose")[::every])


@pytest.fixture(scope="module")
def looked_up() -> Walk:
    return walk(tuple(q for q in questions() if q.by == "explain"))


def test_the_matrix_is_whole() -> None:
    assert len(questions()) >= LEAST_ITEMS
    assert sum(len(q.wordings) for q in questions()) >= LEAST_WORDINGS
    assert all(len(q.wordings) >= 3 for q in questions())
    assert not [i for i, n in Counter(q.id for q in questions()).items() if n > 1]
    assert {q.seed for q in questions()} == {"000", "001", "002", "003", "004"}


def test_complaints_are_never_cleared(complaints: Walk) -> None:
    assert not [s for s in complaints.shortfalls if s.endswith("an all-clear")]


def test_complaints_find_their_cause(complaints: Walk) -> None:
    shown = "\n".join(complaints.shortfalls)
    assert complaints.right >= LEAST_COMPLAINTS * complaints.asked, f"{complaints.right} of {complaints.asked}\n{shown}"


def test_questions_find_their_page(looked_up: Walk) -> None:
    shown = "\n".join(looked_up.shortfalls)
    assert looked_up.right >= LEAST_LOOKED_UP * looked_up.asked, f"{looked_up.right} of {looked_up.asked}\n{shown}"


def test_commands_work_the_numbers_out(complaints: Walk, looked_up: Walk) -> None:
    assert not complaints.failed_runs + looked_up.failed_runs
