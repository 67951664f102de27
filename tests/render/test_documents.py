"""Every kind of answer is one document: the figures that its blocks hold stand in all of its forms, down to the same depth."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from stallwise.doctor.compare import compare
from stallwise.doctor.examine import diagnose
from stallwise.doctor.trend import trend
from stallwise.doctor.whatif import what_if
from stallwise.planner.ask import ask_plan
from stallwise.render.blocks import (
    Column,
    Depth,
    Document,
    Number,
    Table,
    Verdict,
    document,
    number,
    numbers_of,
    sentence,
    table,
)
from stallwise.render.data import as_data
from stallwise.render.documents import document_of
from stallwise.render.html import to_html
from stallwise.render.markdown import to_markdown
from stallwise.render.text import to_text
from stallwise.surfaces.cli._output import Output
from stallwise.units import Unit
from tests.cli.test_terminal import ANSWERS, LOADER, desk  # noqa: F401  # the desk is a fixture
from tests.docs.blocks import REPO

HEALTHY = "tests/cases/none/compiled_healthy"
WIDE = 130
MOST_PROVED, MOST_UNCLEAR = 27, 12  # lines of a first screen
MOST_STATED = 40  # of a scenario in numbers, which keeps every step of its arithmetic
WHOLE = 500  # no column is dropped
CASES = sorted(str(p.parent.relative_to(REPO)) for p in (REPO / "examples" / "scenarios").glob("*/case.toml"))
ANSWERED: dict[str, Callable[[], Any]] = {
    **{f"diagnosis {path}": (lambda path=path: diagnose(str(REPO / path))) for path in (LOADER, HEALTHY, *CASES)},
    "diagnosis words": lambda: diagnose(facts=["symptom=training is slow"]),
    "diagnosis trials": lambda: diagnose(str(REPO / "tests/fixtures/trials/nano124_eager.json")),
    "diagnosis kernels": lambda: diagnose(str(REPO / "tests/fixtures/kernels/kernels_raw.csv.gz")),
    "comparison": lambda: compare([str(REPO / HEALTHY)], [str(REPO / LOADER)]),
    "trend": lambda: trend([str(REPO / p) for p in (HEALTHY, LOADER, HEALTHY, LOADER)]),
    "what if": lambda: what_if(str(REPO / LOADER)),
    "plan": lambda: ask_plan("llama-3-8b", "8xh100", seq=4096, global_batch=64),
}


@cache
def answer(name: str) -> Any:
    return ANSWERED[name]()


def flat(text: str) -> str:
    return "".join(text.split())


def forms(laid: Callable[..., Document]) -> dict[Depth, dict[str, str]]:
    """What a person sees in each form, without markup and spaces, by how deep the form goes."""
    shown = re.sub(r"<(script|style)\b.*?</\1>", " ", to_html(laid(deep=True)), flags=re.S)
    page = flat(html.unescape(re.sub(r"<[^>]+>", "", shown)))
    markdown = flat(html.unescape(re.sub(r"\\([\\`*_{}\[\]<>|#~])", r"\1", to_markdown(laid()))))
    return {
        Depth.FIRST: {"text": flat(to_text(laid(), width=WHOLE)), "markdown": markdown, "html": page},
        Depth.REPORT: {"markdown": markdown, "html": page},
        Depth.PAGE: {"html": page},
    }


def lacking(laid: Callable[..., Document]) -> list[str]:
    """Figures of the document that a form does not show, and those that its data do not have."""
    found = []
    plain = flat(json.dumps(as_data(laid()), ensure_ascii=False))
    for depth, by_form in forms(laid).items():
        figures = list(numbers_of(laid(deep=depth is Depth.PAGE), depth))
        found += [
            f"{form} lacks {f} ({depth.name})"
            for f in figures
            for form, text in by_form.items()
            if flat(str(f)) not in text
        ]
        found += [
            f"json lacks {f}"
            for f in figures
            if depth < Depth.PAGE and flat(json.dumps(str(f), ensure_ascii=False)) not in plain
        ]
    return found


@pytest.mark.parametrize("name", ANSWERED)
def test_every_figure_stands_in_all_forms(name: str) -> None:
    assert lacking(lambda **options: document_of(answer(name), **options)) == []


@pytest.mark.parametrize("name", [name for name, rows in ANSWERS.items() if rows])
def test_every_verb_shows_the_same_figures_in_all_forms(
    name: str,
    desk: Path,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from click.testing import CliRunner

    from stallwise.surfaces.cli import main

    given: list[Callable[..., Document]] = []
    monkeypatch.setattr(Output, "show", lambda self, laid, data: given.append(laid))
    monkeypatch.chdir(desk)
    for words in ANSWERS[name]:
        CliRunner().invoke(main, [*name.split(), *words])
    for laid in given:
        assert lacking(laid) == []


def test_a_figure_that_a_form_leaves_out_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    from stallwise.render import markdown

    laid = lambda **_: document(Verdict("x"), table("t", ("a", number("b")), [("row", Number(12.5, Unit.SECOND))]))  # noqa: E731
    assert lacking(laid) == []
    monkeypatch.setitem(markdown.WAYS, Table, lambda block, level: [])
    assert lacking(laid) == ["markdown lacks 12.5 s (FIRST)", "markdown lacks 12.5 s (REPORT)"]


def shown(width: int, *rows: tuple[str, ...]) -> list[str]:
    head = (Column("name"), number("time"), Column("more", 2), sentence("words", 1))
    return to_text(document(Verdict("x"), table("t", head, rows)), width=width).splitlines()[3:]


def test_a_table_drops_columns_before_it_wraps() -> None:
    row = ("kernel_a", "12.5 ms", "of no great weight", "it waits for memory and reads each line twice")
    assert shown(100, row)[1].split("  ")[-1].strip() == row[-1]
    assert "of no great weight" not in "".join(shown(80, row)) and row[-1] in shown(80, row)[1]
    narrow = shown(44, row)
    assert len(narrow) == 2 and narrow[1].split() == ["kernel_a", "12.5", "ms"]


def test_a_sentence_that_cannot_be_dropped_goes_on_below_itself() -> None:
    words = "one two three four five six seven eight nine ten eleven twelve"
    head = (sentence("do this"), Column("worth"))
    lines = to_text(document(Verdict("x"), table("t", head, [(words, "12.5 ms")])), width=50).splitlines()[4:]
    assert " ".join(" ".join(lines).split()) == f"12.5 ms {words}"  # read on without a break
    assert max(map(len, lines)) <= 50


@pytest.mark.parametrize("name", [name for name in ANSWERED if name.startswith("diagnosis")])
def test_the_first_line_is_the_answer_and_the_first_screen_short(name: str) -> None:
    diagnosis = answer(name)
    lines = to_text(diagnosis, width=WIDE).splitlines()
    assert lines[0].startswith(document_of(diagnosis).verdict.line[:40])
    most = (
        MOST_UNCLEAR
        if diagnosis.state.value == "unclear"
        else MOST_STATED
        if name.endswith(tuple(CASES))
        else MOST_PROVED
    )
    assert len(lines) <= most
