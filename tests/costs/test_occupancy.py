"""The occupancy calculator agrees with the profiler's own figures on every recorded kernel."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stallwise.doctor.gather import gather
from stallwise.evidence.catalog import kernel as k
from stallwise.physics.costs.occupancy import chip, limiter, occupancy
from stallwise.physics.specs.hardware import gpu

FIXTURES = Path(__file__).parents[1] / "fixtures" / "kernels"


@pytest.mark.parametrize("stem", ["kernels_raw", "extra_raw", "library_raw"])
def test_it_agrees_with_the_profiler(stem: str) -> None:
    evidence = gather([str(FIXTURES / f"{stem}.csv.gz")])
    checked = 0
    for scope in evidence.scopes("kernel"):
        view = evidence.within(scope)
        card = chip(view.text(k.DEVICE), view.text(k.CAPABILITY))
        assert card is not None
        fit = occupancy(
            card.sm, 9.0, registers=int(view.value(k.REGISTERS)), shared_bytes=view.value(k.SHARED_BYTES),
            block_threads=int(view.value(k.BLOCK_THREADS)),
        )  # fmt: skip
        assert fit.by_registers == view.value(k.LIMIT_REGISTERS), scope.kernel
        assert fit.by_warps == view.value(k.LIMIT_WARPS), scope.kernel
        # The driver may carve out less shared memory than the SM has, so the profiler's limit can be lower.
        assert fit.by_shared >= view.value(k.LIMIT_SHARED), scope.kernel
        told = [view.value(q) for q in (k.LIMIT_REGISTERS, k.LIMIT_SHARED, k.LIMIT_WARPS, k.LIMIT_BLOCKS)]
        assert fit.share == pytest.approx(view.value(k.THEORETICAL_OCCUPANCY), abs=1e-3) or min(told) == told[1], (
            scope.kernel
        )
        checked += 1
    assert checked >= 6


@given(st.integers(16, 255), st.integers(0, 200_000), st.sampled_from([32, 64, 128, 256, 512, 1024]))
def test_spending_more_never_fits_more(registers: int, shared: int, threads: int) -> None:
    sm = gpu("h100").sm
    here = occupancy(sm, 9.0, registers=registers, shared_bytes=shared, block_threads=threads)
    more = occupancy(sm, 9.0, registers=min(registers + 16, 255), shared_bytes=shared + 4096, block_threads=threads)
    assert more.blocks <= here.blocks
    assert 0 <= here.share <= 1


def test_the_limiter_is_named() -> None:
    assert limiter(1, 5, 8, 32) == "registers"
    assert limiter(9, 1, 8, 32) == "shared memory"
    assert limiter(2, 2, 8, 32) == "registers and shared memory"
    assert limiter(9, 9, 8, 32) == "warp slots"
    assert limiter(64, 64, 64, 16) == "block slots"
