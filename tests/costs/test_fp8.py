"""The FP8 grid is the standard's, and finer scales never hurt."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stallwise.physics.costs.fp8 import E4M3, cheapest_repair, quantise, relative_error, scales

torch = pytest.importorskip("torch")


@given(st.integers(0, 2**32 - 1), st.floats(1e-3, 1e3))
def test_rounding_agrees_with_torchs_float8(seed: int, size: float) -> None:
    values = np.random.default_rng(seed).normal(0, size, 256).clip(-E4M3.largest, E4M3.largest).astype(np.float32)
    ours = quantise(values.astype(np.float64), 1.0)
    theirs = torch.from_numpy(values).to(torch.float8_e4m3fn).to(torch.float64).numpy()
    assert np.allclose(ours, theirs)


@given(st.integers(0, 1000))
def test_finer_scales_are_at_least_as_good(seed: int) -> None:
    noise = np.random.default_rng(seed)
    values = noise.normal(0, 1, (16, 512))
    values[3, 7] = 1e6  # an outlier that one scale for all must hold; the bulk drowns below the smallest step
    errors = [
        relative_error(values[:3], quantise(values, scales(values, how))[:3]) for how in ("tensor", "row", "block")
    ]
    assert errors[0] > 5 * errors[1]
    assert errors[1] == pytest.approx(errors[2], rel=0.25)


def test_the_repair_grows_with_the_outlier() -> None:
    assert cheapest_repair(85.5, 5.3, grows=True).startswith("recalibrate")
    assert "per-row" in cheapest_repair(5.3 * 2**10, 5.3, grows=False)
    assert "BF16" in cheapest_repair(5.3 * 2**20, 5.3, grows=False)
