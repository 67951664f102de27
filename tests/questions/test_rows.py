"""Every question that once fell short has its items in the matrix, or an argument why a right answer differs."""

from __future__ import annotations

from tests.questions.asking import questions
from tests.questions.typed import rows

ONCE_SHORT = 109


def test_every_row_is_held_by_the_matrix() -> None:
    known = {q.id for q in questions()}
    assert len(rows()) == ONCE_SHORT
    assert not [(r.asked, r.items) for r in rows() if not r.items or set(r.items) - known]
    assert {r.seed for r in rows()} == {"000", "001", "002", "003", "004"}
