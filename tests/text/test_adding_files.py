"""A word is added in a cell of the catalogue, a shape and a message by adding a file: no other file is edited."""

from __future__ import annotations

import shutil
import sys
from importlib.resources import files
from pathlib import Path

import pytest

from stallwise.evidence import catalog
from stallwise.evidence.line import Line
from stallwise.readers import shapes
from stallwise.readers.text import entries as lexicon
from stallwise.readers.text import name as naming
from stallwise.readers.text import tables

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


def test_a_word_is_a_word_in_a_cell(monkeypatch: pytest.MonkeyPatch) -> None:
    assert naming.name(("snapshot flush",), "s") is None
    text = (catalog.FOLDER / "run.tsv").read_text(encoding="utf-8")
    line = next(x for x in text.splitlines() if x.startswith("SAVE_TIME"))
    words = catalog.family(text)["SAVE_TIME"].words
    edited = catalog.family(text.replace(line, line.replace(words[0], f"{words[0]}, snapshot flush")))
    known = {**catalog.quantities(), "run.save_time": edited["SAVE_TIME"]}
    monkeypatch.setattr(lexicon, "quantities", lambda: known)
    _forget()
    try:
        found = naming.name(("snapshot flush",), "s")
        assert found is not None and found.quantity.name == "run.save_time"
    finally:
        monkeypatch.undo()
        _forget()


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


SIGNATURE = """
[[message]]
id = "mine.burst"
event = "mine-burst"
anchor = "flux capacitor overheated"
match = 'flux capacitor overheated at (?P<heat>\\d+)'
slots = { heat = "int" }
role = "root"
level = "error"
source = "a test"
"""
GAUGE = """
[catalogue]
format = "my trainer"
reads = "Lines of my trainer"
[[metric]]
anchor = "flush of"
match = 'flush of \\d+ shards lasted (?P<took>[\\d.]+ ?\\w+)'
slots = { took = "time" }
facts = { "run.save_time" = "took" }
"""


def test_a_signature_is_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from stallwise.readers.text import match
    from stallwise.readers.text import message_patterns as judged

    shutil.copytree(str(files("stallwise.readers.text") / "messages"), tmp_path / "messages")
    (tmp_path / "messages" / "zz_mine.toml").write_text(SIGNATURE, encoding="utf-8")
    monkeypatch.setattr(tables, "FOLDER", tmp_path)
    judged.message_patterns.cache_clear()
    try:
        heard = match.matcher_of(judged.message_patterns()).match(
            ["ERROR flux capacitor overheated at 88"], lambda i: Line(i + 1, "flux capacitor overheated at 88", "x")
        )
        assert [(e.kind, e.slots["heat"]) for e in heard.events] == [("mine-burst", 88.0)]
    finally:
        monkeypatch.undo()
        judged.message_patterns.cache_clear()


def test_a_format_is_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from stallwise.doctor.messages import log_metrics_of
    from stallwise.evidence.artifact import Artifact
    from stallwise.readers.text import log_metrics, metric_catalogue

    shutil.copytree(str(files("stallwise.readers.text") / "log_metrics"), tmp_path / "log_metrics")
    (tmp_path / "log_metrics" / "zz_mine.toml").write_text(GAUGE, encoding="utf-8")
    monkeypatch.setattr(tables, "FOLDER", tmp_path)
    metric_catalogue.metric_catalogues.cache_clear()
    log_metrics._anchors.cache_clear()
    try:
        ((message_patterns, (fact,)),) = log_metrics_of(
            Artifact("x.log", content=b"10:00:01 flush of 12 shards lasted 3.5 s\n")
        )
        assert message_patterns.format == "my trainer" and fact.value == 3.5
    finally:
        monkeypatch.undo()
        metric_catalogue.metric_catalogues.cache_clear()
        log_metrics._anchors.cache_clear()
