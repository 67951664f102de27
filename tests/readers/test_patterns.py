"""Expressions that readers keep as data: each fits the lines that stand beside it."""

from __future__ import annotations

import re
from importlib.resources import files

import pytest

from stallwise.evidence.reading import Rows
from stallwise.readers._patterns import document, entries, patterns
from stallwise.readers.engine_iterations import forms
from stallwise.readers.named_columns import JUDGED, kind_of
from stallwise.readers.shapes.logged import line_in

BOOKS = sorted(p.name.removesuffix(".toml") for p in files("stallwise.readers").joinpath("patterns").iterdir())
ENTRIES = [(book, name) for book in BOOKS for name in entries(book)]


@pytest.mark.parametrize(("book", "name"), ENTRIES, ids=lambda x: x)
def test_an_expression_fits_its_samples_alone(book: str, name: str) -> None:
    entry, pattern = entries(book)[name], patterns(book)[name]
    assert entry["sample"], "an expression needs a line that it fits"
    assert all(pattern.search(line) for line in entry["sample"])
    assert not any(pattern.search(line) for line in entry.get("not_sample", ()))
    assert isinstance(pattern, re.Pattern)


@pytest.mark.parametrize(("form", "keys"), forms(), ids=lambda f: f["engine"] if isinstance(f, dict) else "")
def test_a_form_of_iterations_fits_its_samples(form: dict, keys: frozenset[str]) -> None:
    assert form["sample"] and form["source"]
    assert all(line_in(line, lambda key, unit, bare: key.lower() in keys).keys for line in form["sample"])


@pytest.mark.parametrize("kind", document("named_columns")["kind"], ids=lambda k: k["judged"])
def test_a_kind_of_table_is_known_by_its_titles_alone(kind: dict) -> None:
    assert kind["judged"] in JUDGED
    assert kind_of(kind, Rows(tuple(kind["titles"]), tuple([] for _ in kind["titles"]), []), "") is not None
    assert kind_of(kind, Rows(("step", "loss"), ([], []), []), "") is None
