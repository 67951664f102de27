"""The numbers of a scenario, whoever words it: layouts with their outcomes, two times of one kernel, ranges by length, comparisons."""

from __future__ import annotations

import pytest

from stallwise.doctor.examine import diagnose
from stallwise.doctor.findings.diagnosis import Diagnosis
from stallwise.evidence.artifact import Artifact
from stallwise.readers import layer_stats
from stallwise.readers.text.layouts import layouts_in

FITS, FAILED = {"layout.tp": 8.0, "dp": 16.0}, {"layout.tp": 2.0, "dp": 64.0}


def _because(found: Diagnosis) -> str:
    return " ".join(r.text for f in found.findings[:1] for r in f.because)


@pytest.mark.parametrize(
    "text",
    [
        "tp2 dp64 -> OOM, tp8 dp16 -> fine",
        "OOM at tp2/dp64, ok at tp8/dp16.",
        "With tensor parallelism of eight and 16-way FSDP it runs. Tensor parallelism of two with 64-way FSDP dies.",
        "TP=8 x DP=16 trains.\nTP=2 x DP=64 does not.",
    ],
)
def test_the_layout_that_failed_is_now_and_the_one_that_fits_was_before(text):
    facts = layouts_in(text, "words")
    assert {f.quantity.name: f.number for f in facts if f.scope.run == "before"} == FITS
    assert {f.quantity.name: f.number for f in facts if f.scope.run is None} == FAILED


@pytest.mark.parametrize("text", ["TP=8, DP=16 and FSDP2", "tp8 dp16 runs. tp2 dp64 runs too.", "one rank of 8 died"])
def test_layouts_without_two_outcomes_compare_nothing(text):
    assert layouts_in(text, "words") == []


def test_scores_follow_from_heads_and_degrees_alone():
    said = "130B dense, 96 heads, s=4096, b=2, every layer recomputed. OOM at tp2/dp64, ok at tp8/dp16."
    text = _because(diagnose(said, cache=False, workers=1))
    assert "12 -> 48 of 96" in text
    assert "3.22 GB" in text  # 48 heads x 2 x 4096^2 x 2 bytes


def test_a_kernel_and_the_path_it_replaces_are_told_apart_by_the_words_beside_their_times():
    said = "My Triton kernel for norm and linear needs 2.40 ms on an H100, whereas plain PyTorch takes 1.80 ms for both. Why slower?"
    text = _because(diagnose(said, cache=False, workers=1))
    assert "2.40 ms" in text
    assert "1.80 ms" in text
    assert "0.75x" in text


def test_ranges_by_length_in_columns_are_rows_over_the_context():
    page = b"layer,module,calib_amax,amax_2k,amax_16k\n0,o_proj,10,9,11\n7,o_proj,10,10,42\n"
    (table,) = layer_stats.read(Artifact("ranges.csv", content=page))
    assert list(table.columns["layer"]) == ["0.o_proj", "0.o_proj", "7.o_proj", "7.o_proj"]
    assert list(table.columns["x"]) == [2048.0, 16384.0, 2048.0, 16384.0]
    assert table.columns["amax"].max() == 42.0


def test_shares_of_a_pipeline_without_a_noun_are_its_bubble():
    found = diagnose(
        "PP = 4, interleaved, 16 micro-batches. Theory 18.8%, measured 33%. No slow node.", cache=False, workers=1
    )
    assert found.ranked[0] == "pipeline-stage-imbalance"
    assert "33%" in _because(found)
    assert "points" in _because(found)


def test_what_was_given_twice_stands_with_its_ratio():
    said = "At 3 requests a second TTFT is 0.2 s, at 12 requests a second TTFT is 5 s. Llama-70B on 8 H100 in vLLM. Why so slow?"
    text = _because(diagnose(said, cache=False, workers=1))
    assert "200 ms -> 5.00 s (25x)" in text
