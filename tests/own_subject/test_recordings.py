"""Traces as files: what the device did, what happens once, what steps cover, a host alone, a foreign program, a damaged end."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from stallwise.doctor.findings.diagnosis import State
from stallwise.errors import StallwiseError
from tests.own_subject.asked import asked, words

GEMM = "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64"
FP32 = "ampere_sgemm_128x64_tn"


def kernel(name: str, ts: float, dur: float, at: int) -> list[dict[str, Any]]:
    ids = {"correlation": at, "External id": at}
    return [
        {
            "ph": "X",
            "cat": "cuda_runtime",
            "name": "cudaLaunchKernel",
            "pid": 1,
            "tid": 1,
            "ts": ts - 8,
            "dur": 4,
            "args": ids,
        },
        {
            "ph": "X",
            "cat": "kernel",
            "name": name,
            "pid": 0,
            "tid": 7,
            "ts": ts,
            "dur": dur,
            "args": {**ids, "stream": 7, "device": 0},
        },
    ]


def copy(name: str, ts: float, dur: float, at: int, size: int = 0) -> list[dict[str, Any]]:
    ids: dict[str, Any] = {"correlation": at} | ({"bytes": size} if size else {})
    return [
        {
            "ph": "X",
            "cat": "cuda_runtime",
            "name": "cudaMemcpyAsync",
            "pid": 1,
            "tid": 1,
            "ts": ts - 8,
            "dur": 4,
            "args": {"correlation": at},
        },
        {"ph": "X", "cat": "gpu_memcpy", "name": name, "pid": 0, "tid": 7, "ts": ts, "dur": dur, "args": ids},
    ]


def trace(events: list[dict[str, Any]], card: str = "NVIDIA H100 80GB HBM3") -> str:
    device = {"id": 0, "name": card, "totalGlobalMem": 85 << 30, "computeMajor": 9, "computeMinor": 0, "numSms": 132}
    return json.dumps({"schemaVersion": 1, "deviceProperties": [device], "traceEvents": events})


def products(name: str, start: float, count: int, at: int = 100) -> list[dict[str, Any]]:
    return [e for i in range(count) for e in kernel(name, start + i * 1000.0, 995.0, at + i)]


def test_a_busy_device_with_narrow_products_is_in_line_within_its_limit(tmp_path: Path) -> None:
    answer = asked(tmp_path, "trace.json", trace(products(GEMM, 100.0, 40)))
    said = words(answer)
    assert "40 kernels of 995.0 us in the mean" in said and "the device works 99.5% of the" in said
    assert answer.state is State.HEALTHY and "speaks for the recording only" in said


def test_fp32_products_are_known_by_their_names(tmp_path: Path) -> None:
    answer = asked(tmp_path, "trace.json", trace(products(FP32, 100.0, 40)))
    assert answer.ranked[0] == "tensor-cores-unused" and "the device works 99.5%" in words(answer)


def test_a_device_that_waits_is_never_in_line(tmp_path: Path) -> None:
    events = [e for i in range(40) for e in kernel(GEMM, 100.0 + i * 5000.0, 900.0, 100 + i)]
    answer = asked(tmp_path, "trace.json", trace(events))
    assert answer.state is not State.HEALTHY and "the device works 18" in words(answer)


def test_an_upload_before_the_first_product_is_told_apart(tmp_path: Path) -> None:
    events = [*copy("Memcpy HtoD (Pinned -> Device)", 100.0, 50_000.0, 1, 2 << 30), *products(GEMM, 50_200.0, 40)]
    said = words(asked(tmp_path, "trace.json", trace(events)))
    assert "2.15 GB are copied in 50.0 ms before the first matrix product, once" in said


def test_ranges_that_hold_little_of_the_work_are_no_steps(tmp_path: Path) -> None:
    marks = [{"ph": "X", "cat": "user_annotation", "name": f"ProfilerStep#{i}", "pid": 1, "tid": 1, "ts": 90.0 + i * 1000.0, "dur": 1000.0}
             for i in range(3)]  # fmt: skip
    few = words(asked(tmp_path, "few.json", trace([*marks, *products(GEMM, 100.0, 60)])))
    assert "no steps are marked in it" in few
    most = [m | {"dur": 19_000.0, "ts": 90.0 + i * 20_000.0} for i, m in enumerate(marks)]
    assert "3 steps cover" in words(asked(tmp_path, "most.json", trace([*most, *products(GEMM, 100.0, 60)])))


def host_only(card: str = "NVIDIA A100-SXM4-40GB") -> str:
    rows = [
        ("aten::rand", 0.0, 2_940_000.0),
        ("aten::uniform_", 10.0, 2_870_000.0),
        ("aten::to", 3_000_000.0, 1_450_000.0),
    ]
    return trace(
        [{"ph": "X", "cat": "cpu_op", "name": n, "pid": 1, "tid": 1, "ts": ts, "dur": dur} for n, ts, dur in rows], card
    )


def test_a_trace_without_a_device_tells_what_the_host_did(tmp_path: Path) -> None:
    answer = asked(tmp_path, "trace.json", host_only())
    said = words(answer)
    assert answer.state is State.UNCLEAR and "no work of a device was recorded" in said
    assert "aten::uniform_: 2.87 s of 4.45 s" in said and "aten::rand 2.94 s" in said
    assert "ProfilerActivity.CUDA" in said and "all_reduce_perf" not in said


def test_a_foreign_program_s_spans_are_read_and_said_to_be_foreign(tmp_path: Path) -> None:
    spans = [{"name": n, "cat": n, "pid": 0, "tid": 0, "ts": at * 1e6, "dur": 0.9e6, "ph": "X"}
             for at, n in enumerate(["backward-compute", "backward-compute", "forward-compute"])]  # fmt: skip
    answer = asked(tmp_path, "spans.json", json.dumps(spans))
    said = words(answer)
    assert answer.state is State.UNCLEAR and "no known accelerator writes" in said and "backward-compute 1.80 s" in said


def test_events_without_a_category_are_known_by_their_names(tmp_path: Path) -> None:
    rows = []
    for i in range(20):
        at = i * 250_000.0
        rows += [("[MEMCPY] HtoD", at, 8_000.0), ("void at::native::vectorized_elementwise_kernel<4>(int)", at + 9_000, 290.0),
                 ("[MEMCPY] DtoH", at + 9_500, 63_000.0)]  # fmt: skip
    events = [{"name": n, "ph": "X", "ts": 1e12 + ts, "dur": dur, "pid": 1, "tid": 7} for n, ts, dur in rows]
    said = words(asked(tmp_path, "gpu.json", json.dumps(events)))
    assert "20 kernels of 290.0 us" in said and "1.26 s to the host and 160.0 ms from it" in said
    assert "0 B" not in said


@pytest.mark.parametrize("part", [0.35, 0.6, 0.9])
def test_a_trace_cut_anywhere_is_no_health_and_says_that_it_is_cut(tmp_path: Path, part: float) -> None:
    whole = trace(products(GEMM, 100.0, 40)).encode()
    for name, raw in (
        ("cut.json", whole[: int(part * len(whole))]),
        ("cut.json.gz", gzip.compress(whole)[: int(part * 700)]),
    ):
        try:
            answer = asked(tmp_path, name, raw)
        except StallwiseError as error:
            assert "cut" in str(error) or "ends" in str(error)
        else:
            assert answer.state is not State.HEALTHY and (
                "middle of an event" in words(answer) or "cut off" in words(answer)
            )


def test_an_unknown_accelerator_is_said_as_such_and_its_host_is_read(tmp_path: Path) -> None:
    document = json.loads(host_only("Foreign NPU 910"))
    document["traceEvents"] += [
        {"ph": "X", "cat": "npu_task", "name": "MatMulV3", "pid": 9, "tid": 3, "ts": 3_000_000.0 + i * 1e4, "dur": 9e3}
        for i in range(40)
    ]
    answer = asked(tmp_path, "npu.json", json.dumps(document))
    said = words(answer)
    assert (
        answer.state is State.UNCLEAR
        and "40 events of foreign categories, such as MatMulV3" in said
        and "aten::uniform_" in said
    )


def test_a_card_without_a_data_sheet_is_named(tmp_path: Path) -> None:
    said = words(asked(tmp_path, "trace.json", trace(products(GEMM, 100.0, 40), card="Foreign GPU 7")))
    assert "no data sheet of Foreign GPU 7 is known here" in said and "the device works 99.5%" in said
