"""A person's sentences are told from a program's lines, and a question from a report."""

from __future__ import annotations

import pytest

from stallwise.doctor.examine import diagnose
from stallwise.doctor.findings.diagnosis import State
from stallwise.evidence.catalog import stated
from stallwise.readers.shapes.prose import sentences
from stallwise.readers.text.human_text import first_statement


@pytest.mark.parametrize(
    ("page", "told", "asked"),
    [
        ("We went to four nodes and it is only 1.4 times as fast as on one of them.", True, True),
        ("In the profile the exchange takes 480 ms of a step of 1.05 s. Worth a look?", True, True),
        ("The run on 64 cards is done and the checkpoint lies in the bucket of the team.", True, False),
        ("It is only the weekly check of the cluster: all 512 ports are up and no errors are seen.", False, False),
        ("step 10 loss 2.31 lr 3e-4 tps 6,949 mfu 40.7%", False, False),
        ("│ Output token throughput (per sec) │ 520.87 │ N/A │ N/A │ N/A │", False, False),
    ],
)
def test_who_tells_of_a_run_and_who_asks(page: str, told: bool, asked: bool) -> None:
    sentence, asks = first_statement(sentences(page), page)
    assert (bool(sentence), asks) == (told, asked)


def test_a_question_without_a_word_for_its_trouble_is_answered(tmp_path) -> None:  # type: ignore[no-untyped-def]
    page = tmp_path / "chat.txt"
    page.write_text(
        "MoE with 8 experts, EP=8 over 2 nodes. In the profile the all-to-all of dispatch and combine takes 480 ms of a "
        "step of 1.05 s, and it is on the critical path. Is it worth the work?\n"
    )
    found = diagnose(str(page), cache=False)
    assert found.state is State.SICK and found.ranked[0] == "all-to-all-bound"


def test_a_report_without_a_question_is_no_complaint(tmp_path) -> None:  # type: ignore[no-untyped-def]
    page = tmp_path / "note.txt"
    page.write_text(
        "I compared eager and compiled: 41 ms against 29 ms a step on the 4090. Both are in the table now.\n"
    )
    found = diagnose(str(page), cache=False)
    assert found.state is State.UNCLEAR and not found.evidence.all(stated.ASKED)
