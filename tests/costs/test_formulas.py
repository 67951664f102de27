"""The formulas: each documented, computable, refused nonsense; the pages in docs are those of the code."""

from __future__ import annotations

import math
from pathlib import Path
from types import ModuleType

import pytest

from stallwise.errors import BadRequest
from stallwise.physics.costs.formulas import all_formulas, evaluate, formula_named, inputs_of
from stallwise.physics.costs.formulas._write import pages

DOCS = Path(__file__).parents[2] / "docs" / "formulas"
FORMULAS = all_formulas()


@pytest.mark.parametrize("name", FORMULAS)
def test_a_formula_is_complete(name: str) -> None:
    module = FORMULAS[name]
    assert module.__doc__ and module.__doc__.splitlines()[0].endswith(".")
    assert module.EQUATION.strip() and module.SOURCE.strip()
    results = module.evaluate()
    assert results and all(math.isfinite(value) for value in results.values())
    used = set(inputs_of(module)) | set(results)
    assert set(module.UNITS) <= used, "a unit for a name that the formula does not have"


@pytest.mark.parametrize("file", pages())
def test_the_page_in_docs_is_current(file: str) -> None:
    path = DOCS / file
    assert path.exists() and path.read_text(encoding="utf-8") == pages()[file], (
        "python -m stallwise.physics.costs.formulas._write docs/formulas"
    )


def test_docs_hold_no_page_without_a_formula() -> None:
    assert {path.name for path in DOCS.glob("*.md")} == set(pages())


def test_what_a_user_types_is_read_with_its_unit() -> None:
    ring: ModuleType = formula_named("ring_allreduce")
    assert evaluate(ring, {"size_bytes": "2GB", "ranks": "512"})["sent_bytes"] == pytest.approx(2e9 * 2 * 511 / 512)


@pytest.mark.parametrize("given", [{"rank": "8"}, {"ranks": "0"}, {"size_bytes": "two"}])
def test_nonsense_inputs_are_refused(given: dict[str, str]) -> None:
    with pytest.raises(BadRequest):
        evaluate(formula_named("ring-allreduce"), given)


def test_an_unknown_formula_names_its_neighbours() -> None:
    with pytest.raises(BadRequest) as caught:
        formula_named("ring-reduce")
    assert "ring-allreduce" in caught.value.hint
