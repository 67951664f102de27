"""Planted faults in real kernels: the first answer follows from counters, whatever page they came from."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from stallwise.doctor.examine import diagnose
from stallwise.doctor.findings.diagnosis import Diagnosis
from stallwise.evidence.catalog.kernel import VENDOR_RULE
from stallwise.render.json import to_dict

FIXTURES = Path(__file__).parents[2] / "fixtures" / "kernels"

PLANTED = {
    "gemm_cuda_cores": {"tensor-cores-unused"},
    "strided_copy": {"uncoalesced-access"},
    "stream_triad": {"dram-bandwidth-bound", "none"},
    "divergent": {"warp-divergence"},
    "spilling": {"register-spills"},
    "low_occupancy": {"latency-bound-low-occupancy"},
    "fma_bound": {"compute-roof", "none"},
    "small_grid": {"grid-too-small"},
    "wave_tail": {"tail-wave"},
    "barrier_heavy": {"barrier-stalls"},
}
# bench/gpu/kernels_extra.cu: names that say nothing, faults that only counters show.
EXTRA = {
    "k01": {"shared-bank-conflicts"},
    "k02": {"compute-roof", "none"},
    "k03": {"atomic-contention"},
    "k04": {"fp64-in-hot-path"},
    "k05": {"block-imbalance"},
    "k06": {"tensor-cores-starved", "uncoalesced-access"},  # the details page hides the tensor pipe
    "k07": {"compute-roof", "none"},  # strided, but absorbed by the caches
    "k08": {"dram-bandwidth-bound", "none"},  # a masked tail costs nothing
    "k09": {"compute-roof", "none"},  # many registers without spills
    "k10": {"latency-bound-low-occupancy"},
    "k11": {"uncoalesced-access"},
    "k12": {"register-spills"},
    "k13": {"tensor-cores-unused"},
    "k14": {"warp-divergence"},
}
LIBRARY = {
    "nvjet_sm90_tst_320x128": {"compute-roof", "none"},
    "nvjet_sm90_tst_64x16": {"dram-bandwidth-bound", "none"},  # a thin product streams its weights
    "sm80_xmma_gemm_f32f32": {"tensor-cores-unused"},
    "sm90_xmma_gemm_f64f64": {"compute-roof", "none"},
}
TRITON = {"fused_rms_linear": {"tensor-cores-starved"}, "nvjet": {"compute-roof", "none"}}
CASES = [
    *(("kernels_details", name, accept) for name, accept in PLANTED.items()),
    *(("kernels_raw", name, accept) for name, accept in PLANTED.items()),
    *(("extra_details", name, accept) for name, accept in EXTRA.items()),
    *(("extra_raw", name, accept) for name, accept in (EXTRA | {"k06": {"tensor-cores-starved"}}).items()),
    *(("library_details", name, accept) for name, accept in LIBRARY.items()),
    *(("library_raw", name, accept) for name, accept in LIBRARY.items()),
    *(("triton_details", name, accept) for name, accept in TRITON.items()),
]


@cache
def diagnosis_of(stem: str) -> Diagnosis:
    return diagnose(str(FIXTURES / f"{stem}.csv.gz"))


def first_answer(stem: str, kernel: str) -> str:
    kernels = to_dict(diagnosis_of(stem))["kernels"]
    return str(next(k["ranked"][0] for k in kernels if k["name"].startswith(kernel)))


@pytest.mark.parametrize(("stem", "kernel", "accept"), CASES)
def test_the_first_answer_is_the_planted_fault(stem: str, kernel: str, accept: set[str]) -> None:
    assert first_answer(stem, kernel) in accept


# What each of the vendor's rules amounts to in our words, to be fair to it.
VENDOR_MEANS = {
    "CPIStall": {"barrier-stalls", "tensor-cores-starved"},
    "MemoryL2Compression": set(),
    "MemoryCacheAccessPattern": {"uncoalesced-access"},
    "UncoalescedGlobalAccess": {"uncoalesced-access"},
    "ThreadDivergence": {"warp-divergence"},
    "TheoreticalOccupancy": {"latency-bound-low-occupancy"},
    "AchievedOccupancy": {"latency-bound-low-occupancy"},
    "LaunchConfiguration": {"tail-wave", "grid-too-small"},
    "IssueSlotUtilization": {"latency-bound-low-occupancy"},
    "WorkloadImbalance": {"block-imbalance"},
    "FPInstructions": set(),
}


def test_beside_the_vendors_top_rule_ours_is_right_on_all_ten() -> None:
    evidence = diagnosis_of("kernels_details").evidence
    rows = []
    for kernel, accept in PLANTED.items():
        scope = next(s for s in evidence.scopes("kernel") if (s.kernel or "").startswith(kernel))
        vendor = evidence.text(VENDOR_RULE, kernel=scope.kernel)
        ours = first_answer("kernels_details", kernel)
        vendor_right = bool(VENDOR_MEANS.get(vendor, set()) & accept)
        rows.append((kernel, ours, ours in accept, vendor, vendor_right))
    for kernel, ours, right, vendor, vendor_right in rows:
        print(f"{kernel:18s} ours {ours:28s} {right!s:5s}  vendor {vendor:26s} {vendor_right}")
    assert all(right for _, _, right, _, _ in rows)
    assert sum(v for *_, v in rows) < len(rows)  # the vendor's ranking alone would mislead


def test_occupancy_is_never_first_where_the_tensor_pipe_is_the_factor() -> None:
    for stem in ("triton_details", "kernels_details", "extra_raw"):
        for kernel in to_dict(diagnosis_of(stem))["kernels"]:
            causes = kernel["ranked"]
            if {"tensor-cores-unused", "tensor-cores-starved"} & set(causes):
                assert causes[0] != "latency-bound-low-occupancy"


def test_the_run_answers_with_the_kernel_that_has_most_at_stake() -> None:
    diagnosis = diagnosis_of("kernels_details")
    assert diagnosis.ranked[0] == "tensor-cores-unused"
    assert not diagnosis.healthy
    assert "gemm_cuda_cores" in diagnosis.findings[0].headline


def test_gains_stay_within_the_kernels_time() -> None:
    from stallwise.evidence.catalog.kernel import TOTAL_TIME

    diagnosis = diagnosis_of("extra_raw")
    for finding in diagnosis.findings:
        if finding.scope.kernel and finding.gain:
            time_s = diagnosis.evidence.value(TOTAL_TIME, kernel=finding.scope.kernel)
            assert 0 <= finding.gain.low_s <= finding.gain.high_s <= time_s


def test_a_short_collection_is_answered_carefully() -> None:
    """The basic set lacks pipes and stalls: no wrong certainty."""
    for finding in diagnosis_of("extra_basic").findings:
        name = (finding.scope.kernel or "")[:3]
        if finding.confidence >= 0.8 and name in EXTRA:
            assert finding.cause in EXTRA[name]
