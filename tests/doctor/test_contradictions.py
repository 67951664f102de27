"""Numbers that cannot be true are said to be so, and plain ones are left alone."""

from __future__ import annotations

import pytest

from stallwise.doctor.examine import diagnose


def said(*words: str) -> str:
    return " | ".join(r.text for r in diagnose(facts=words).contradictions)


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("gpu=h100", "precision=bf16", "flop_rate=1200TFLOP/s"), "above the 989 TFLOP/s"),
        (("mfu=52%", "hfu=47%"), "MFU 52% is above HFU 47%"),
        (("gpus=512", "tp=8", "pp=4", "dp=32"), "1024 GPUs"),
        (("gpu=h100", "memory=95GB"), "do not fit"),
        (("step_time=1s", "data_time=1.4s"), "longer than the whole step"),
        (("pp=8", "microbatches=32", "schedule=1f1b", "bubble=9%"), "below the least possible 17.9%"),
        (("gpu=h100", "mfu=20%", "flop_rate=450TFLOP/s"), "is an MFU of 45%"),
        (("gpu_util=1.3",), "cannot exceed 100%"),
    ],
)
def test_what_cannot_be_is_said(words: tuple[str, ...], text: str) -> None:
    assert text in said(*words)


@pytest.mark.parametrize(
    "words",
    [
        ("gpu=h100", "precision=bf16", "flop_rate=650TFLOP/s", "mfu=65%"),
        ("mfu=40%", "hfu=52%"),
        ("gpus=512", "tp=8", "pp=4", "dp=16"),
        ("gpu=h100", "memory=79GB"),
        ("pp=8", "microbatches=32", "schedule=zb-h2", "bubble=3%"),
        ("pp=8", "microbatches=32", "schedule=interleaved", "bubble=9%"),
    ],
)
def test_what_can_be_is_left_alone(words: tuple[str, ...]) -> None:
    assert said(*words) == ""
