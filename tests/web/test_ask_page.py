"""The page asks: the question comes with the answer, and a choice runs the diagnosis again."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from stallwise.surfaces.web.server import MOST_ANSWERS, LocalPage
from tests.web.pages import ask, local_page

WORDS = {"words": "training is slow"}


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalPage]:
    root: Path = tmp_path_factory.mktemp("empty")
    with local_page(root) as served:
        yield served


def test_a_choice_runs_again_with_the_answer(page: LocalPage) -> None:
    first = ask(page, "/api/diagnose", WORDS).json
    (question,) = first["questions"]
    assert first["state"] == "unclear" and question["choices"][-1] == "don't know"
    again = ask(
        page, "/api/diagnose", {**WORDS, "answers": [next(c for c in question["choices"] if "DataLoader" in c)]}
    ).json
    assert again["ranked"][0] == "input-starved" and again != first


def test_the_report_of_an_unclear_answer_shows_the_question(page: LocalPage) -> None:
    first = ask(page, "/api/diagnose", WORDS).json
    report = ask(page, f"/report/{first['report']}?token={page.token}").body.decode()
    assert "One question" in report and first["questions"][0]["text"] in report


@pytest.mark.parametrize("answers", ["1", [1], [["1"]], ["?"] * (MOST_ANSWERS + 1)])
def test_answers_are_a_short_list_of_texts(page: LocalPage, answers: object) -> None:
    assert ask(page, "/api/diagnose", {**WORDS, "answers": answers}).status == 400


def test_the_page_draws_choices_as_buttons(page: LocalPage) -> None:
    drawn = ask(page, f"/?token={page.token}").body.decode()
    assert 'id="question"' in drawn and "found.questions[0]" in drawn
