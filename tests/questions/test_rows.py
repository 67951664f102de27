"""Every question that once fell short is typed as a user would and has its cause and number, or argues why it differs."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.questions.asking import questions
from tests.questions.typed import Row, rows, wrong

ONCE_SHORT = 109


def test_every_row_is_held_by_the_matrix() -> None:
    known = {q.id for q in questions()}
    assert len(rows()) == ONCE_SHORT
    assert not [(r.asked, r.items) for r in rows() if not r.items or set(r.items) - known]
    assert not [r.asked for r in rows() if r.typed and not r.causes and not r.says]
    assert {r.seed for r in rows()} == {"000", "001", "002", "003", "004"}


@pytest.mark.parametrize("row", rows(), ids=lambda r: f"{r.seed} {r.asked}"[:60])
def test_what_is_typed_comes_back_right(row: Row, tmp_path: Path) -> None:
    assert not wrong(row, tmp_path)
