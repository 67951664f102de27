"""What stated numbers imply."""

from __future__ import annotations

from functools import cache

import pytest

from stallwise.doctor.measures import measure_evidence
from stallwise.doctor.stating import state
from stallwise.evidence.catalog import expected
from stallwise.evidence.evidence import Evidence
from stallwise.evidence.quantity import Quantity


@cache
def measured(words: tuple[str, ...]) -> Evidence:
    evidence = Evidence()
    state(evidence, words)
    measure_evidence(evidence)
    return evidence


def implied(quantity: Quantity, *words: str, **labels: object) -> float:
    return measured(words).value(quantity, **labels)


SERVED = ("model=Llama-70B", "precision=fp8", "gpu=h100", "gpus=8", "qps=16", "user_rate=22", "ttft=4.2s")
LAYOUT = ("parameters=405B", "tp=4", "dp=128", "tp.before=8", "dp.before=64")


def test_kv_of_a_70b_model() -> None:
    assert implied(expected.KV_BYTES_PER_TOKEN, *SERVED) == 2 * 80 * 8 * 128 * 2
    assert implied(expected.WEIGHT_BYTES, *SERVED) == pytest.approx(70.6e9, rel=0.01)
    assert implied(expected.CONCURRENCY, *SERVED) == pytest.approx(16 * (4.2 + 512 / 22), abs=1)
    assert implied(expected.DECODE_FLOOR, *SERVED) == pytest.approx(70.6e9 / (8 * 3.35e12 * 0.88), rel=0.05)


def test_two_layouts_of_a_405b_model() -> None:
    assert implied(expected.STATE_BYTES, *LAYOUT, run=None) == implied(expected.STATE_BYTES, *LAYOUT, run="before")
    assert implied(expected.GATHERED_LAYER, *LAYOUT, run=None) == 2 * implied(
        expected.GATHERED_LAYER, *LAYOUT, run="before"
    )


def test_a_slowdown_in_gpus_and_dollars() -> None:
    words = ("mfu=22%", "mfu.before=48%", "gpus=512", "gpu=h100")
    assert implied(expected.SLOWDOWN, *words) == pytest.approx(48 / 22)
    assert implied(expected.LOST_GPUS, *words) == 277
    assert implied(expected.LOST_DOLLARS, *words) > 100


def test_a_cliff_and_a_smooth_curve() -> None:
    cliff = ("allreduce_time@64=45ms", "allreduce_time@128=52ms", "allreduce_time@256=61ms", "allreduce_time@512=340ms")
    smooth = (*cliff[:3], "allreduce_time@512=80ms")
    assert implied(expected.CLIFF_RATIO, *cliff) > 4
    assert implied(expected.CLIFF_GPUS, *cliff) == 512
    assert implied(expected.CLIFF_RATIO, *smooth) < 1.3


def test_ceilings_of_an_h100() -> None:
    words = ("gpu=h100", "precision=fp16", "m=4096", "n=4096", "k=4096", "flop_rate=180TFLOPS", "cublas=650TFLOPS")
    assert implied(expected.VECTOR_CEILING, *words) == pytest.approx(134e12, rel=0.01)
    assert implied(expected.GEMM_TIME, *words) == pytest.approx(2 * 4096**3 / 180e12)


def test_the_range_of_fp8() -> None:
    assert implied(expected.FP8_MAX, "format=fp8-e4m3") == 448
    assert implied(expected.CLIP_RATIO, "observed_max=310", "calibrated_max=100") == pytest.approx(3.1)


def test_nothing_is_implied_by_nothing() -> None:
    evidence = Evidence()
    measure_evidence(evidence)
    assert not [name for name in evidence.facts if name.startswith("expected.")]
