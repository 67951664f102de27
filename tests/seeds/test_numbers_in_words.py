"""Numbers of sentences: which quantity, and whether it is what was, what is or what was hoped for."""

from __future__ import annotations

import pytest

from stallwise.doctor.examine import diagnose
from stallwise.evidence.catalog import stated
from stallwise.readers.shapes.prose import numbers_in
from stallwise.readers.text.nouns import named

Told = list[tuple[str, str, float]]


def told(text: str) -> Told:
    sentence = tuple(numbers_in(text, "p"))
    pairs = zip(sentence, named(sentence), strict=True)
    return [(n.quantity.name, n.scope, round(float(r.value) * n.scale, 6)) for r, n in pairs if n is not None]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("MFU stood at 41% for two days, then slid to 19%", [("run.mfu", "before", 0.41), ("run.mfu", "now", 0.19)]),
        ("mfu was 52 for 6h, now sits at 30", [("run.mfu", "before", 0.52), ("run.mfu", "now", 0.3)]),
        ("bubble should be 3/24 = 12.5%, we measure 31%", [("bubble_expected", "expected", 0.125), ("bubble", "now", 0.31)]),
        ("The textbook bubble is 9%, the profiler shows 26%", [("bubble_expected", "expected", 0.09), ("bubble", "now", 0.26)]),
        ("bubble: expected 0.14, got 0.33", [("bubble_expected", "expected", 0.14), ("bubble", "now", 0.33)]),
        ("bubble of 38 percent where 20 was predicted", [("bubble", "", 0.38), ("bubble_expected", "expected", 0.2)]),
        ("I hoped for a 2.2x speedup and got 0.9x", [("expected_speedup", "expected", 2.2), ("custom_speedup", "now", 0.9)]),
        ("validation loss is 1.87 vs the BF16 baseline of 1.85", [("run.eval_loss", "", 1.87), ("run.eval_loss", "before", 1.85)]),
        ("passkey retrieval at 48k tokens fell from 90 to 55",
         [("task_context", "", 48000.0), ("accuracy", "before", 0.9), ("accuracy", "", 0.55)]),
        ("on needle the bf16 model finds 77 %, the fp8 model 52 %", [("accuracy", "before", 0.77), ("accuracy", "", 0.52)]),
        ("sixteen pipeline stages, forty-eight microbatches", [("pp", "", 16.0), ("microbatches", "", 48.0)]),
        ("micro batch 4, 12 micro batches", [("microbatch", "", 4.0), ("microbatches", "", 12.0)]),
    ],
)  # fmt: skip
def test_expected_measured_before_and_now_are_told_apart(text: str, wanted: Told) -> None:
    assert told(text) == wanted


def test_sides_of_a_product_however_they_are_written() -> None:
    for text in ("gemm with M=N=K=2048", "gemm of 2048^3", "2048x2048 times 2048x2048 in fp16"):
        sides = {tuple(r.path)[-1].lower().split()[-1]: r.value for r in numbers_in(text, "p")}
        assert {sides.get(side) for side in "mnk"} == {2048.0}, text


def test_a_clock_time_and_a_ratio_of_names_are_no_values() -> None:
    assert told("MFU of 46 % from Tuesday 18:00 until roughly 23:10") == [("run.mfu", "", 0.46)]
    assert ("run.tokens_per_s", "", 4000.0) in told("tokens/s = 4000")


@pytest.mark.parametrize(
    ("text", "ratio", "who"),
    [
        ("node 7 takes 4.8 s a step, the others 2.0 s", 2.4, "node 7"),
        ("rank 13 of 64 needs 700 ms per step on its own, all others 350 ms", 2.0, "rank 13"),
    ],
)
def test_one_rank_against_its_peers(text: str, ratio: float, who: str) -> None:
    found = diagnose(text, cache=False)
    assert found.ranked[0] == "straggler-rank"
    assert found.evidence.value(stated.SLOW_RANK_RATIO) == pytest.approx(ratio)
    assert found.evidence.text(stated.SLOW_NODE) == who
