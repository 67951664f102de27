"""What 16 bits win on the device: products and what follows them, less the casts around what stays wide."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from stallwise.doctor.measures._changes import playable
from stallwise.doctor.measures._device_changes import device_gains
from stallwise.evidence.artifact import Artifact
from stallwise.evidence.timeline import Timeline
from stallwise.readers.native import torch_trace

PRODUCT = ("aten::mm", "sm90_xmma_gemm_f32f32_tf32f32_f32_tn_n_tilesize128x64x32")
POINTWISE = ("aten::silu", "void at::native::vectorized_elementwise_kernel<4, silu_kernel, float>")
NORM = ("aten::native_group_norm", "void at::native::GroupNormForward<float, layer_norm>")
BATCH_NORM = ("aten::cudnn_batch_norm", "void cudnn::bn_fw_tr_1C11_kernel_NCHW<float>")
SOFTMAX = ("aten::_softmax", "void at::native::cunn_SoftMaxForward<4, float>")
LASTS_US, STEPS = 400.0, 4


def won_ms(place: Path, *kernels: tuple[str, str]) -> float:
    """What the narrower type wins in a step of these kernels, all equally long, on a host that is far ahead."""
    events: list[dict[str, Any]] = []

    def add(name: str, cat: str, ts: float, dur: float, **args: Any) -> None:
        where = {"pid": 0, "tid": 7} if cat == "kernel" else {"pid": 100, "tid": 100}
        events.append({"ph": "X", "cat": cat, "name": name, "ts": ts, "dur": dur, "args": args, **where})

    at, free, number = 0.0, 0.0, 0
    for step in range(STEPS):
        begin = at
        for operator, kernel in kernels * 8:
            number += 1
            add(operator, "cpu_op", at, 20.0, **{"External id": number})
            add("cudaLaunchKernel", "cuda_runtime", at + 5.0, 8.0, correlation=number)
            free = max(free + 1.0, at + 15.0)
            add(kernel, "kernel", free, LASTS_US, correlation=number, stream=7, device=0)
            at, free = at + 25.0, free + LASTS_US
        add(f"ProfilerStep#{step}", "user_annotation", begin, at - begin)
    path = place / f"trace-{len(list(place.iterdir()))}.json"
    card = [{"id": 0, "name": "NVIDIA H200", "totalGlobalMem": 150e9, "numSms": 132}]
    path.write_text(json.dumps({"schemaVersion": 1, "deviceProperties": card, "traceEvents": events}))
    timeline = next(x for x in torch_trace.read(Artifact(path.name, path)) if isinstance(x, Timeline))
    replays = playable(timeline)
    assert replays is not None
    return 1e3 * device_gains(replays)["dtype"][1] / 8


def test_pointwise_work_is_narrow_after_products_and_wide_after_norms(tmp_path: Path) -> None:
    alone = won_ms(tmp_path, PRODUCT)
    assert alone == pytest.approx(0.4 * (1 - 2 / 3.4), rel=0.1)
    assert won_ms(tmp_path, PRODUCT, POINTWISE) == pytest.approx(alone + 0.2, rel=0.1)
    casts = 1.2 * 0.4
    # The silu after the norm reads what the norm wrote, in 32 bits.
    assert won_ms(tmp_path, PRODUCT, NORM, POINTWISE) < max(alone + 0.2 - casts, 0.0) + 0.02
    assert won_ms(tmp_path, PRODUCT, PRODUCT, PRODUCT, SOFTMAX) == pytest.approx(3 * alone - 0.6 * 0.4, rel=0.15)


def test_batch_norm_takes_the_narrow_type_without_casts(tmp_path: Path) -> None:
    beside = won_ms(tmp_path, PRODUCT, BATCH_NORM, POINTWISE)
    assert beside == pytest.approx(won_ms(tmp_path, PRODUCT, POINTWISE), rel=0.1)
