"""One answer tells one set of numbers, in text, HTML, Markdown and JSON: every bundled case, and every shared one where they are.

A failure lists what does not hold, one line a rule. `python -m tests.consistency [NAME]` prints the same for all cases.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import pytest

from stallwise.doctor.examine import diagnose
from stallwise.doctor.findings.finding import Finding, Gain
from stallwise.doctor.whatif import what_if
from stallwise.errors import StallwiseError
from stallwise.render.text import to_text
from stallwise.units import Unit, show
from tests.consistency import rules
from tests.consistency.cases import Case, bundled, shared
from tests.consistency.forms import Forms, forms_of, rendered
from tests.shared_data import REPO

TRACES = [
    case for case in (*bundled(), *shared()) if case.name.startswith(("cases/", "traces/loader", "programs/", "more/"))
]


def assert_consistent(case: Case) -> None:
    try:
        forms = forms_of(case)
    except StallwiseError:
        return  # refused in plain words: there is no answer to compare
    found = rules.problems(forms)
    assert not found, f"{case.name} ({' '.join(case.paths)}):\n  " + "\n  ".join(found)


@pytest.mark.parametrize("case", bundled(), ids=lambda case: case.name)
def test_a_bundled_case_tells_one_set_of_numbers(case: Case) -> None:
    assert_consistent(case)


@pytest.mark.parametrize("case", shared(), ids=lambda case: case.name)
def test_a_shared_case_tells_one_set_of_numbers(case: Case) -> None:
    assert_consistent(case)


@pytest.mark.parametrize("case", TRACES, ids=lambda case: case.name)
def test_what_if_tells_the_step_of_the_diagnosis_and_wins_no_more_than_it(case: Case) -> None:
    for path in case.paths:
        try:
            answer = what_if(path)
        except StallwiseError:
            continue  # nothing of it can be replayed
        ledger = diagnose(path, cache=False, workers=1).ledger
        assert ledger is not None
        if answer.ranks == 1:
            assert show(answer.clean_step_s, Unit.SECOND) == show(ledger.whole_s, Unit.SECOND)
        for tried in (*answer.alone, *([answer.together] if answer.together else [])):
            gain, name = tried.gain, ", ".join(tried.changes)
            assert gain.low_s <= (gain.likely_s or 0.0) * rules.ROUNDING <= gain.high_s * rules.ROUNDING**2, name
            assert gain.high_s < answer.clean_step_s or gain.high_s <= 0, f"{name}: all of the step"
            assert tried.step_s > 0 and tried.step_s + (gain.likely_s or 0.0) == pytest.approx(answer.clean_step_s), (
                name
            )
        if answer.traced_step_s == answer.clean_step_s:
            assert "while traced" not in to_text(answer)


# The rules themselves: an answer that is right in all of them, broken in one at a time.
@cache
def right() -> Forms:
    return forms_of(Case("loader_slow", (str(REPO / "examples" / "traces" / "loader_slow"),)))


def first_with(**changed: object) -> Forms:
    diagnosis = right().diagnosis
    first: Finding = replace(diagnosis.findings[0], **changed)  # type: ignore[arg-type]
    return rendered(replace(diagnosis, findings=(first, *diagnosis.findings[1:])))


def broken() -> dict[str, Forms]:
    diagnosis = right().diagnosis
    ledger, gain, table = diagnosis.ledger, diagnosis.findings[0].gain, diagnosis.hypotheses
    assert ledger is not None and gain is not None
    more = tuple(replace(h, probability=0.9, found=False) for h in table)
    return {
        "one step time": first_with(headline="The GPU waits for input: 62.4 ms of every 470 ms."),
        "gains within": first_with(gain=Gain(0.06, 0.076, "replayed: x", 0.07)),
        "amounts within": first_with(headline="The GPU waits for input: 99.0 ms of every 120 ms."),
        "dashed line": replace(right(), page=right().page.replace("replayed 56.3 ms", "replayed 43.5 ms")),
        "ranges in order": rendered(replace(diagnosis, ledger=replace(ledger, ranges=dict.fromkeys(ledger.ranges, (1.0, 0.5))))),
        "shares of one whole": rendered(replace(diagnosis, hypotheses=more)),
        "headline is the first row": rendered(replace(diagnosis, hypotheses=tuple(reversed(table)), ranked=("launch-bound",))),
        "same in all forms": replace(right(), markdown=right().markdown.replace("62.4 ms", "63.1 ms")),
        "numbers that are none": first_with(summary="The loader needs nan ms; unknown come from elsewhere; unexplained -3.77 s."),
    }  # fmt: skip


def test_an_answer_that_is_right_breaks_no_rule() -> None:
    assert rules.problems(right()) == []


def test_every_rule_finds_what_it_is_for() -> None:
    assert len(broken()) == len(rules.RULES)
    for rule, forms in broken().items():
        assert any(problem.startswith(rule) for problem in rules.problems(forms)), rule
