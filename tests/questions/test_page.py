"""The page of questions is written from the matrix and fresh."""

from __future__ import annotations

import os

from tests.questions.asking import questions
from tests.questions.page import PAGE, TITLES, page


def test_the_page_is_fresh() -> None:
    if os.environ.get("STALLWISE_UPDATE_DOCS"):
        PAGE.write_text(page(), encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8") == page(), "python -m tests.questions.page writes it"


def test_every_theme_has_its_place() -> None:
    assert {q.theme for q in questions()} == set(TITLES)
