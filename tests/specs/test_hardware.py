"""The GPU catalogue: names people and drivers use, and numbers that agree with each other."""

from __future__ import annotations

import pytest

from stallwise.errors import BadRequest
from stallwise.physics.specs.hardware import Gpu, all_gpus, find_gpu, gpu

REQUIRED = """
    a100-40gb-sxm a100-80gb-sxm h100-sxm h100-pcie h100-nvl h200 b200 gb200 l40s a10 v100-sxm-32gb t4 rtx-4090 mi250x
    mi300x mi325x
"""


@pytest.mark.parametrize("name", REQUIRED.split())
def test_the_catalogue_has_it(name: str) -> None:
    assert gpu(name).name == name


@pytest.mark.parametrize(
    ("driver", "memory_bytes", "name"),
    [
        ("NVIDIA H200", None, "h200"),
        ("NVIDIA H100 80GB HBM3", 85_018_279_936, "h100-sxm"),
        ("NVIDIA H100 PCIe", None, "h100-pcie"),
        ("Tesla V100-SXM2-16GB", 16.9e9, "v100-sxm-16gb"),
        ("V100", 16.9e9, "v100-sxm-16gb"),
        ("NVIDIA A100-SXM4-40GB", None, "a100-40gb-sxm"),
        ("A100", 42.3e9, "a100-40gb-sxm"),
        ("AMD Instinct MI300X", None, "mi300x"),
        ("NVIDIA A10G", None, "a10"),
        ("NVIDIA GB200", None, "gb200"),
        ("4090", None, "rtx-4090"),
    ],
)
def test_driver_strings_find_their_card(driver: str, memory_bytes: float | None, name: str) -> None:
    found = find_gpu(driver, memory_bytes=memory_bytes)
    assert found is not None and found.name == name


def test_unknown_cards_are_unknown_and_typos_get_a_hint() -> None:
    assert find_gpu("NVIDIA Graphics Device") is None
    with pytest.raises(BadRequest) as error:
        gpu("h100-sxn")
    assert "h100-sxm" in error.value.hint


@pytest.mark.parametrize("card", all_gpus(), ids=lambda g: g.name)
def test_rates_are_consistent(card: Gpu) -> None:
    assert card.source
    assert card.peak("fp16") >= card.peak("fp32") * 0.99
    assert card.peak("fp8") >= card.peak("bf16") * 0.99
    # Ordinary cores do 64 or 128 fused multiply-adds a clock and SM: fp32 follows from clock and SMs.
    if card.vendor == "nvidia" and card.peak("fp32") > 1e12:
        lanes = card.peak("fp32") / (2 * card.sm_count * card.boost_hz)
        assert 55 < lanes < 145
    assert 20 < card.ridge("fp16") < 600


def test_the_h100_cuda_core_ceiling_is_near_134_tflops() -> None:
    assert gpu("h100-sxm").peak("fp16_vector") == pytest.approx(134e12, rel=0.01)


@pytest.mark.parametrize(
    "driver", ["A100X", "NVIDIA RTX A1000", "A100-SXM-64GB", "NVIDIA GeForce RTX 2080 Ti", "Quadro RTX 6000"]
)
def test_a_card_that_is_not_in_the_catalogue_is_no_other_card(driver: str) -> None:
    assert find_gpu(driver) is None


@pytest.mark.parametrize(
    ("driver", "family"), [("A100-PG509-200", "a100"), ("8xH100", "h100"), ("H100 94GB", "h100-nvl")]
)
def test_family_memory_and_form_factor_decide(driver: str, family: str) -> None:
    found = find_gpu(driver)
    assert found is not None and found.name.startswith(family)
