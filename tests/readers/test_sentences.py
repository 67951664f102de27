"""A sentence is shown to a few readers only: those that are left out know no sentence."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from stallwise.evidence.artifact import Artifact
from stallwise.readers import OF_SENTENCES, all_readers, readers_for

INCIDENTS = Path(__file__).parents[1] / "incidents"
WRITTEN = sorted(
    {
        json.loads(line)["text"]
        for name in ("complaints.jsonl", "wordings.jsonl")
        for line in (INCIDENTS / name).read_text(encoding="utf-8").splitlines()
    }
)[::5]


def test_what_people_write_is_known_to_the_same_readers_as_if_all_were_asked() -> None:
    every = all_readers()
    for text in WRITTEN:
        head = text.encode()
        by_all = {r.FORMAT for r in every if r.recognises("words", head)}
        assert {r.FORMAT for r in readers_for(_typed(head))} == by_all, text


@pytest.mark.parametrize(
    "line", ["tgi_queue_size 96", "layer,dtype,abs_min,abs_max", 'DCGM_FI_DEV_GPU_UTIL{gpu="0"} 35', "step_time = 1.2"]
)
def test_one_line_of_a_program_is_shown_to_all(line: str) -> None:
    head = line.encode()
    by_all = {r.FORMAT for r in all_readers() if r.recognises("words", head)}
    found = readers_for(_typed(head))
    assert {r.FORMAT for r in found} <= by_all
    assert bool(found) == bool(by_all)


def test_the_readers_of_sentences_are_there() -> None:
    assert set(OF_SENTENCES) <= {str(r.__name__).rpartition(".")[2] for r in all_readers()}  # type: ignore[attr-defined]


def _typed(text: bytes) -> Artifact:
    return Artifact("words", content=text, typed=True)
