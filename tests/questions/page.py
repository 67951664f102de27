"""Writes the page of questions from the matrix: `python -m tests.questions.page` (or STALLWISE_UPDATE_DOCS=1 in the tests)."""

from __future__ import annotations

import shlex

from tests.questions.asking import LEAST_COMPLAINTS, LEAST_LOOKED_UP, REPO, Question, questions

PAGE = REPO / "docs" / "questions.md"
TITLES = {
    "symptoms": "What people say of a run",
    "kernels": "Kernels",
    "cluster": "Many GPUs",
    "memory": "Memory",
    "serving": "Serving",
    "numerics": "Numbers that go wrong",
    "stages": "Stages of a step, and levers",
    "machine": "The machine and the loop",
    "systems": "Systems questions",
    "scale": "Large models",
    "conduct": "What to ask for first",
}


def page() -> str:
    """All questions: what people ask, what to type, what comes back."""
    whole = questions()
    count = sum(len(q.wordings) for q in whole)
    lines = [
        "# What people ask, what to type, what comes back", "",
        f"{len(whole)} questions in {count:,} wordings, asked in the tests one by one. WORDS stands for the question, in quotes; "
        "numbers and files beside it make the answer surer. What comes back is what a right answer must hold: the tests keep at "
        f"least {LEAST_COMPLAINTS:.0%} of the complaints and {LEAST_LOOKED_UP:.0%} of the questions right, and never let a complaint "
        "be called healthy. `python -m tests.questions.page` writes this page.", "",
    ]  # fmt: skip
    for theme, title in TITLES.items():
        lines += [f"## {title}", "", "| asked | also asked as | type | comes back |", "|---|---|---|---|"]
        lines += [_row(q) for q in whole if q.theme == theme]
        lines.append("")
    departing = [q for q in whole if q.departs]
    lines += ["## Where a right answer departs from what is often said", ""]
    lines += [f"- {_cell(q.wordings[0])}: {_cell(q.departs)}." for q in departing]
    return "\n".join(lines) + "\n"


def _row(question: Question) -> str:
    first, *others = question.wordings
    return f"| {_cell(first)} | {_cell('; '.join(others))} | {_typed(question)} | {_cell(_answer(question))} |"


def _typed(question: Question) -> str:
    if question.by == "explain":
        typed = ["stallwise explain WORDS"]
    else:
        given = [*question.files, *("PASTED" for _ in question.texts)]
        facts = [f"--fact {shlex.quote(f)}" for f in question.facts]
        typed = [" ".join(["stallwise diagnose", *given, *facts, "--fact symptom=WORDS"])]
    if question.run:
        typed.append(f"stallwise {question.run}")
    return "<br>".join(f"`{_cell(t)}`" for t in typed)


def _answer(question: Question) -> str:
    told = []
    if question.unclear:
        told.append("that it cannot tell, and what to capture")
    if question.causes:
        among = "" if question.first == 1 else f" among the first {question.first}"
        told.append(f"{' or '.join(question.causes[:4])}{among}")
    if question.fixes:
        told.append(f"{len(question.fixes)} fixes in order" if len(question.fixes) > 1 else "the fix")
    if question.trap:
        told.append("the trap")
    if question.artifact:
        told.append("what to capture first")
    if question.by == "explain":
        told.append("a page with the idea, its formula and a number")
    if question.number:
        told.append(f"{question.number['at'].split('.')[-1]} {question.number['value']:g}")
    return "; ".join(told)


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;").replace("\n", " ")


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    print(PAGE)
