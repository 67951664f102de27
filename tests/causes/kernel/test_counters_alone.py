"""Rules follow from counters: kernels without a name, on other chips, with healthy twins."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stallwise.doctor.examine import examine
from stallwise.doctor.findings.diagnosis import Diagnosis
from stallwise.evidence.catalog import kernel as k
from stallwise.evidence.evidence import Evidence
from stallwise.evidence.fact import Fact, Scope, Source
from stallwise.evidence.quantity import Quantity

BASE: dict[Quantity, Any] = {
    k.TIME: 1e-3, k.TOTAL_TIME: 1e-3, k.SM_SHARE: 0.3, k.DRAM_SHARE: 0.2, k.L2_SHARE: 0.2, k.L1_SHARE: 0.2,
    k.ISSUE_SHARE: 0.2, k.ACHIEVED_OCCUPANCY: 0.6, k.THEORETICAL_OCCUPANCY: 0.75, k.GRID_BLOCKS: 8000.0, k.SM_COUNT: 108.0,
    k.WAVES: 18.52, k.ACTIVE_THREADS: 32.0, k.TENSOR_SHARE: 0.0, k.FMA_SHARE: 0.05, k.FP64_SHARE: 0.0, k.ALU_SHARE: 0.1,
    k.INSTRUCTIONS: 1e7, k.SPILL_REQUESTS: 0.0, k.SM_ACTIVE: 0.99, k.SM_IMBALANCE: 0.02, k.EXCESS_SECTORS: 0.0,
    k.CONFLICT_SHARE: 0.0, k.ATOMIC_REQUESTS: 0.0, k.L2_IMBALANCE: 0.05, k.CAPABILITY: "8.0",
}  # fmt: skip


def of(counters: dict[Quantity, Any], name: str = "k0(float *, int)") -> Diagnosis:
    evidence = Evidence()
    scope = Scope(kernel=name)
    evidence.add([Fact(q, v, Source("counters"), scope) for q, v in (BASE | counters).items()])
    return examine(evidence)


def first(counters: dict[Quantity, Any], name: str = "k0(float *, int)") -> str:
    findings = [f for f in of(counters, name).findings if f.scope.kernel]
    return findings[0].cause if findings else "none"


CASES: dict[str, tuple[dict[Quantity, Any], set[str]]] = {
    "T4, doubles in a float kernel": (
        {k.CAPABILITY: "7.5", k.FP64_SHARE: 0.96, k.FP32_OVER_FP64: 32.0, k.SM_SHARE: 0.96, k.ISSUE_SHARE: 0.06},
        {"fp64-in-hot-path"},
    ),
    "A100, strided reads": (
        {k.DRAM_SHARE: 0.88, k.L2_SHARE: 0.7, k.EXCESS_SECTORS: 0.75, k.STALL_LONG_SCOREBOARD: 0.9, k.SM_SHARE: 0.08},
        {"uncoalesced-access"},
    ),
    "A100, a stream": ({k.DRAM_SHARE: 0.9, k.SM_SHARE: 0.1, k.STALL_LONG_SCOREBOARD: 0.9}, {"dram-bandwidth-bound"}),
    "A100, a library product": (
        {k.TENSOR_SHARE: 0.86, k.SM_SHARE: 0.86, k.ACHIEVED_OCCUPANCY: 0.12, k.L1_SHARE: 0.5}, {"compute-roof"},
    ),
    "B200, starved": (
        {k.CAPABILITY: "10.0", k.SM_COUNT: 148.0, k.TENSOR_SHARE: 0.18, k.ACHIEVED_OCCUPANCY: 0.12, k.STALL_LONG_SCOREBOARD: 0.5},
        {"tensor-cores-starved"},
    ),
    "a product whose tiles come in scattered sectors": (
        {k.TENSOR_SHARE: 0.38, k.CONTRACTION: 1.0, k.EXCESS_SECTORS: 0.8, k.L1_SHARE: 0.95, k.LSU_SHARE: 0.8, k.L2_SHARE: 0.6,
         k.STALL_LONG_SCOREBOARD: 0.6}, {"tensor-cores-starved"},
    ),
    "a product whose tiles conflict in shared memory": (
        {k.TENSOR_SHARE: 0.4, k.CONTRACTION: 1.0, k.CONFLICT_SHARE: 0.8, k.L1_SHARE: 0.9, k.STALL_MIO_THROTTLE: 0.5},
        {"tensor-cores-starved"},
    ),
    "a small product on a few SMs": (
        {k.GRID_BLOCKS: 16.0, k.WAVES: 0.15, k.TENSOR_SHARE: 0.08, k.SM_ACTIVE: 0.14, k.ACHIEVED_OCCUPANCY: 0.12},
        {"grid-too-small"},
    ),
    "registers spilled on L4": (
        {k.CAPABILITY: "8.9", k.SPILL_REQUESTS: 3e6, k.LOCAL_TRAFFIC: 0.6, k.L1_SHARE: 0.7, k.REGISTERS: 255.0,
         k.ACHIEVED_OCCUPANCY: 0.16, k.STALL_LONG_SCOREBOARD: 0.7}, {"register-spills"},
    ),
    "255 registers and no spill, FMA full": (
        {k.REGISTERS: 255.0, k.FMA_SHARE: 0.93, k.SM_SHARE: 0.93, k.ISSUE_SHARE: 0.9, k.ACHIEVED_OCCUPANCY: 0.12}, {"compute-roof"},
    ),
    "colliding atomics": (
        {k.ATOMIC_REQUESTS: 1e6, k.L2_IMBALANCE: 0.9, k.STALL_LONG_SCOREBOARD: 0.8, k.DRAM_SHARE: 0.01, k.L1_SHARE: 0.02,
         k.L2_SHARE: 0.03, k.ISSUE_SHARE: 0.01}, {"atomic-contention"},
    ),
    "spread atomics at L2 speed": (
        {k.ATOMIC_REQUESTS: 1e4, k.INSTRUCTIONS: 1e8, k.L2_SHARE: 0.6, k.DRAM_SHARE: 0.75, k.STALL_LONG_SCOREBOARD: 0.5},
        {"dram-bandwidth-bound", "none"},
    ),
    "bank conflicts": (
        {k.CONFLICT_SHARE: 0.85, k.CONFLICT_WAYS: 8.0, k.L1_SHARE: 0.95, k.STALL_MIO_THROTTLE: 0.6, k.DRAM_SHARE: 0.05},
        {"shared-bank-conflicts"},
    ),
    "a tail of one block in two waves": (
        {k.GRID_BLOCKS: 109.0, k.WAVES: 1.01, k.BLOCKS_PER_SM: 1.0, k.SM_ACTIVE: 0.51, k.SM_IMBALANCE: 0.49},
        {"tail-wave"},
    ),
    "ragged blocks": ({k.SM_ACTIVE: 0.4, k.SM_IMBALANCE: 0.58}, {"block-imbalance"}),
    "half a warp at work": (
        {k.ACTIVE_THREADS: 9.0, k.ISSUE_SHARE: 0.85, k.SM_SHARE: 0.85, k.ALU_SHARE: 0.5}, {"warp-divergence"},
    ),
    "a masked tail": (
        {k.ACTIVE_THREADS: 31.2, k.DRAM_SHARE: 0.86, k.STALL_LONG_SCOREBOARD: 0.8}, {"dram-bandwidth-bound"},
    ),
    "barriers": (
        {k.STALL_BARRIER: 0.6, k.STALL_LONG_SCOREBOARD: 0.1, k.ISSUE_SHARE: 0.3, k.BLOCK_THREADS: 1024.0}, {"barrier-stalls"},
    ),
    "few warps": (
        {k.ACHIEVED_OCCUPANCY: 0.06, k.THEORETICAL_OCCUPANCY: 0.06, k.STALL_LONG_SCOREBOARD: 0.95, k.ISSUE_SHARE: 0.02,
         k.SM_SHARE: 0.02}, {"latency-bound-low-occupancy"},
    ),
    "a product on ordinary cores, no name": (
        {k.FMA_SHARE: 0.45, k.L1_SHARE: 0.8, k.DRAM_SHARE: 0.04, k.FUSED_SHARE: 0.97, k.SM_SHARE: 0.7, k.ISSUE_SHARE: 0.6},
        {"tensor-cores-unused"},
    ),
    "sums in shared memory are no product": (
        {k.FMA_SHARE: 0.3, k.L1_SHARE: 0.8, k.DRAM_SHARE: 0.04, k.FUSED_SHARE: 0.0, k.ISSUE_SHARE: 0.6}, {"none"},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_counters_decide(name: str) -> None:
    counters, accept = CASES[name]
    assert first(counters) in accept


def test_doubles_by_choice_are_not_an_accident() -> None:
    counters = {k.FP64_SHARE: 0.9, k.SM_SHARE: 0.9, k.ISSUE_SHARE: 0.1}
    accident = next(f for f in of(counters).findings if f.cause == "fp64-in-hot-path")
    chosen = next(f for f in of(counters, "solve(double *, int)").findings if f.cause == "fp64-in-hot-path")
    assert accident.confidence > 0.8 and chosen.optional


SHARES = (
    k.DRAM_SHARE, k.TENSOR_SHARE, k.FMA_SHARE, k.L1_SHARE, k.L2_SHARE, k.ISSUE_SHARE, k.SM_SHARE, k.ACHIEVED_OCCUPANCY,
    k.EXCESS_SECTORS, k.CONFLICT_SHARE, k.STALL_BARRIER, k.STALL_LONG_SCOREBOARD, k.SM_ACTIVE, k.SM_IMBALANCE,
)  # fmt: skip


@settings(max_examples=60, deadline=None)
@given(st.fixed_dictionaries(dict.fromkeys(SHARES, st.floats(0, 1))))
def test_whatever_the_counters_answers_stay_sane(counters: dict[Quantity, float]) -> None:
    findings = [f for f in of(counters).findings if f.scope.kernel]
    for finding in findings:
        assert 0 <= finding.confidence <= 1
        assert finding.gain is None or 0 <= finding.gain.low_s <= finding.gain.high_s <= 1e-3
    if counters[k.TENSOR_SHARE] >= 0.03 and findings:
        assert findings[0].cause != "latency-bound-low-occupancy"
    if counters[k.TENSOR_SHARE] >= 0.8 or counters[k.FMA_SHARE] >= 0.97:
        assert not any(f.cause == "tensor-cores-starved" for f in findings)


def test_a_busy_fma_pipe_is_no_ceiling_of_a_product() -> None:
    """The tensor pipe at 12% and FMA at 94%: neither at a roof nor healthy, with or without a telling name."""
    wrong_pipe = {k.TENSOR_SHARE: 0.12, k.FMA_SHARE: 0.94, k.SM_SHARE: 0.94, k.ISSUE_SHARE: 0.9}
    named = of(wrong_pipe, "hgemm_kernel(__half const *, __half const *, __half *)")
    assert named.ranked[0] == "tensor-cores-starved" and not named.healthy
    nameless = of(wrong_pipe)
    assert not nameless.healthy and not any(f.cause == "compute-roof" for f in nameless.findings)


def test_a_product_on_the_tensor_pipe_and_attention_beside_it_stay_at_the_ceiling() -> None:
    assert first({k.TENSOR_SHARE: 0.86, k.SM_SHARE: 0.86}) == "compute-roof"
    assert first({k.TENSOR_SHARE: 0.6, k.XU_SHARE: 0.82, k.SM_SHARE: 0.82}) == "compute-roof"
