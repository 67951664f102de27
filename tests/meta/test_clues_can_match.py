"""Nothing is asked for that nobody can say: every clue, need and symptom has a source."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

from stallwise.causes import all_rules
from stallwise.doctor.findings.symptom import Symptom
from stallwise.doctor.symptoms import _DETECTORS
from stallwise.evidence import catalog
from stallwise.evidence.quantity import Quantity
from stallwise.readers.text.entries import entries
from stallwise.readers.text.words import word_table

SOURCE = Path(catalog.__file__).parents[3]
SPEAKERS = (
    "stallwise.readers",
    "stallwise.doctor.measures",
    "stallwise.readers.text",
    "stallwise.recorder",
    "stallwise.physics.probe",
)


@cache
def _spoken_names() -> frozenset[str]:
    """Every name in capitals that a reader, a measure or the lexicon's code uses."""
    found: set[str] = set()
    for package in SPEAKERS:
        for path in SOURCE.joinpath(*package.split(".")).rglob("*.py"):
            found |= set(re.findall(r"\b[A-Z][A-Z0-9_]{2,}\b", path.read_text(encoding="utf-8")))
    return frozenset(found)


@cache
def _constants() -> dict[str, str]:
    """The name of each quantity's constant in the catalogue."""
    found: dict[str, str] = {}
    for module in catalog.FAMILIES.values():
        found.update({q.name: name for name, q in vars(module).items() if isinstance(q, Quantity)})
    return found


def _hearable(quantity: Quantity) -> bool:
    """Named by the lexicon, stated by a word of the catalogue, or given by a reader or a measure."""
    return (
        quantity.name in entries()
        or "." not in quantity.name
        or bool(quantity.aliases)
        or _constants().get(quantity.name) in _spoken_names()
        or any(quantity.name in text for text in _texts())
    )


@cache
def _texts() -> tuple[str, ...]:
    """Tables by which readers and the lexicon name quantities."""
    folders = [SOURCE.joinpath(*package.split(".")) for package in SPEAKERS]
    return tuple(
        p.read_text(encoding="utf-8") for f in folders for end in ("*.toml", "*.py", "*.csv") for p in f.rglob(end)
    )


@pytest.mark.parametrize("rule", all_rules(), ids=lambda r: r.cause)
def test_clues_and_needs_can_be_heard(rule) -> None:  # type: ignore[no-untyped-def]
    asked = {*rule.needs, *(q for clue in rule.clues for q in clue.reads)}
    unheard = sorted(q.name for q in asked if not _hearable(q))
    assert not unheard, f"{rule.cause} asks for what nothing can supply: {unheard}"


@pytest.mark.parametrize("symptom", Symptom, ids=lambda s: s.name)
def test_symptoms_have_a_detector(symptom: Symptom) -> None:
    in_words = {row["name"] for row in word_table("symptoms.toml")["symptom"]}
    assert symptom.name in in_words or symptom in {s for s, _ in _DETECTORS}
