"""A complaint that names its reason: the thing, not its absence, and not the complaint itself."""

from __future__ import annotations

import pytest

from stallwise.doctor.examine import diagnose
from stallwise.meaning.sayings import blamed_in


@pytest.mark.parametrize(
    ("words", "thing"),
    [
        ("most of the time we wait for the next batch", "batches"),
        ("it is slow because of the data loader", "batches"),
        ("half of the step is spent in communication", "communication"),
        ("training is slow only while nsys is attached", "the profiler"),
        ("writing the checkpoint takes half the time", "writing checkpoints"),
        ("the cards are limited to 300 W", "a power limit"),
        ("the router sends nearly everything to few experts", "unevenly loaded experts"),
        ("our kernel launches thousands of tiny ops", "kernel launches"),
    ],
)
def test_what_is_blamed(words: str, thing: str) -> None:
    found = blamed_in(words)
    assert found is not None and found[0] == thing


@pytest.mark.parametrize(
    "words",
    [
        "training is slow",
        "the data loader is not the bottleneck",
        "a fused optimizer did not help",
        "kernel uses 40 blocks on a card with 132 SMs",
        "all-reduce is slow at 512 GPUs",
        "what would refute communication as the reason",
    ],
)
def test_nothing_is_blamed(words: str) -> None:
    assert blamed_in(words) is None


def test_a_thing_does_not_answer_another_sort_of_trouble() -> None:
    told = diagnose(facts=["symptom=out of memory, attention writes the whole score matrix"], workers=1)
    assert told.ranked[0].startswith("oom-")
    slow = diagnose(facts=["symptom=slow: attention writes the whole score matrix"], workers=1)
    assert slow.ranked[0] == "attention-materialized"


@pytest.mark.xfail(
    strict=True, reason="a complaint of speed alone is answered with oom-logits, by the words vocab and logits"
)
def test_what_stops_a_job_does_not_answer_a_complaint_of_speed() -> None:
    told = diagnose(facts=["symptom=training with vocab 150k and logits in fp32 is slow"], workers=1)
    assert not told.ranked[0].startswith("oom-")
