"""A word and a shape are added by adding a file: no other file is edited."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

import pytest

from stallwise.meaning import entries as lexicon
from stallwise.meaning import name as naming
from stallwise.readers import shapes

WORD = '["run.save_time"]\nbetter = "lower"\nwords = ["snapshot flush"]\n'
SHAPE = """
from stallwise.evidence.reading import Reading

def recognises(name, text):
    return text.startswith("%%pairs")

def read(text):
    for line in text.splitlines()[1:]:
        key, _, value = line.partition("~")
        yield Reading((key,), float(value))
"""


def _forget() -> None:
    for cached in (lexicon.entries, lexicon.weights, lexicon.by_word, naming.name, shapes.all_shapes):
        cached.cache_clear()


@pytest.fixture
def fresh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The package's tables in a folder of the test."""
    shutil.copytree(str(files("stallwise.meaning") / "lexicon"), tmp_path / "lexicon")
    monkeypatch.setattr(lexicon, "files", lambda _: tmp_path)
    _forget()
    yield tmp_path
    monkeypatch.undo()
    _forget()


def test_a_word_is_a_file(fresh: Path) -> None:
    assert naming.name(("snapshot flush",), "s") is None
    (fresh / "lexicon" / "zz_mine.toml").write_text(WORD, encoding="utf-8")
    _forget()
    found = naming.name(("snapshot flush",), "s")
    assert found is not None and found.quantity.name == "run.save_time"


def test_a_shape_is_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a_new_shape.py").write_text(SHAPE, encoding="utf-8")
    monkeypatch.setattr(shapes, "__path__", [*shapes.__path__, str(tmp_path)])
    _forget()
    try:
        found = list(shapes.shapes_in("x", "%%pairs\nstep time~0.5\n"))
        assert [(r.path, r.value) for r in found] == [(("step time",), 0.5)]
    finally:
        sys.modules.pop("stallwise.readers.shapes.a_new_shape", None)
        monkeypatch.undo()
        _forget()
