"""Retired words do not come back: the list with what is left of each is retired_words.tsv."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).parents[2] / ".ci" / "words.py"
_spec = importlib.util.spec_from_file_location("words", SCRIPT)
assert _spec is not None and _spec.loader is not None
words = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(words)


def test_no_retired_word_comes_back() -> None:
    ran = subprocess.run([sys.executable, str(SCRIPT), "--check"], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr


def test_names_are_taken_apart_and_phrases_are_found() -> None:
    found = words.counts(
        ["_was_told WasTold TOLD untold x.told()", "It Looks Bad, is not."], ["told", "looks bad, is not"]
    )
    assert found == {"told": 4, "looks bad, is not": 1}


def test_every_row_names_its_replacement() -> None:
    rows = words.listed()
    assert len(rows) >= 40 and all(instead and allowed >= 0 for _, instead, allowed in rows)
    assert len({word for word, _, _ in rows}) == len(rows)
