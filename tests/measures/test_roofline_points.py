"""Points of the roofline lie under the roof."""

from __future__ import annotations

from pathlib import Path

import pytest

from stallwise.doctor.examine import diagnose
from stallwise.physics.costs.roofline import ceiling_flop_per_s, rate_by_pipes
from stallwise.physics.specs.hardware import gpu

REPO = Path(__file__).parents[2]


def test_profiled_kernels_stand_under_the_ceiling() -> None:
    found = diagnose(str(REPO / "tests" / "fixtures" / "kernels" / "kernels_raw.csv.gz"))
    (table,) = found.evidence.table("roofline")
    c = table.columns
    assert len(table) >= 5
    assert (c["rate_flop_per_s"] <= c["roof_flop_per_s"] * (1 + 1e-9)).all()
    assert (c["intensity"] > 0).all()
    by_name = {n.split("(")[0]: i for i, n in enumerate(c["name"].tolist())}
    bound, streaming = by_name["fma_bound"], by_name["stream_triad"]
    assert c["rate_flop_per_s"][bound] > 0.8 * c["roof_flop_per_s"][bound]
    assert c["intensity"][streaming] < 1.0 < c["intensity"][bound]


def test_the_ceiling_is_the_lower_of_memory_and_arithmetic() -> None:
    card = gpu("h100-sxm")
    assert ceiling_flop_per_s(card, "bf16", 1.0) == card.bandwidth_byte_per_s
    assert ceiling_flop_per_s(card, "bf16", 1e6) == card.peak("bf16")
    assert ceiling_flop_per_s(card, "bf16", card.ridge("bf16")) == pytest.approx(card.peak("bf16"))


def test_pipes_in_use_become_operations() -> None:
    card = gpu("h100-sxm")
    assert rate_by_pipes(card, 0.5, "fp16", 0.0, 0.0) == 0.5 * card.peak("fp16")
    assert rate_by_pipes(card, 0.0, "", 0.25, 0.0) == 0.25 * card.peak("fp32")
