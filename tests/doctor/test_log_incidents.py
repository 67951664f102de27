"""Incidents told by logs alone, written in many dialects: the mechanism is named, and healthy logs are left alone."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from stallwise.doctor.examine import diagnose
from stallwise.doctor.findings.diagnosis import State

Files = dict[str, str]
_RANDOM = np.random.default_rng(1)


def noise(size: float = 0.01) -> float:
    return float(1 + size * _RANDOM.standard_normal())


def megatron(step: int, time_ms: float, loss: float = 2.0, grad_norm: float = 1.0, scale: float = 1.0) -> str:
    return (
        f" iteration {step:8d}/  500000 | consumed samples: {step * 1024:12d} | elapsed time per iteration (ms): {time_ms:.1f} | "
        f"throughput per GPU (TFLOP/s/GPU): {200000 / time_ms:.1f} | learning rate: 1.5E-04 | lm loss: {loss:.6E} | "
        f"loss scale: {scale} | grad norm: {grad_norm:.3f} | number of skipped iterations:   0 |\n"
    )


def healthy_megatron() -> Files:
    return {
        "train.log": "".join(megatron(i * 10, (9000 if i == 0 else 500) * noise(), 9 - i * 0.05) for i in range(80))
    }


def healthy_titan() -> Files:
    form = "[titan] 2025-08-12 09:{m:02d}:{s:02d},110 - root - INFO - step: {i}  loss: {l:.4f}  grad_norm: 1.1  memory: 68GiB(86%)  tps: {t:,.0f}  mfu: 40.8%\n"  # noqa: E501
    rows = [form.format(m=i // 6, s=i % 6 * 10, i=i * 10, l=9 - i * 0.05, t=7000 * noise()) for i in range(1, 60)]
    return {"out.txt": "".join(rows)}


def healthy_trainer() -> Files:
    rows = [
        f"{{'loss': {2 - 0.01 * i + 0.02 * noise(1):.3f}, 'grad_norm': 1.2, 'learning_rate': 2e-05, 'epoch': {i / 100}}}\n"
        for i in range(60)
    ]
    return {"log.txt": "".join(rows)}


def healthy_with_rare_saves() -> Files:
    rows = [
        megatron(i * 10, 500 * noise())
        + (f"saving checkpoint at iteration {i * 10} to /ckpt\n" if i % 50 == 49 else "")
        for i in range(150)
    ]
    return {"train.log": "".join(rows)}


def healthy_loss_scale() -> Files:
    return {
        "train.log": "".join(
            megatron(i, 500 * noise(), 5 - 0.01 * i, 1.0, 65536.0 if i < 2 else 32768.0) for i in range(100)
        )
    }


def healthy_wait_for_queued_work() -> Files:
    cells = ("Name", "Self CPU %", "Self CPU", "CPU total", "Self CUDA", "# of Calls")
    rows = [
        cells,
        ("cudaDeviceSynchronize", "81.0%", "2.430s", "2.430s", "0.000us", "10"),
        ("aten::mm", "5.0%", "150.0ms", "180.0ms", "2.700s", "4500"),
    ]
    table = "\n".join("  ".join(f"{c:>22}" for c in row) for row in rows)
    return {"profile.txt": f"{table}\nSelf CPU time total: 3.000s\nSelf CUDA time total: 2.900s\n"}


def drop() -> Files:
    return {"train.log": "".join(megatron(i * 10, 500 * noise() * (1 if i < 60 else 2.1)) for i in range(120))}


def leak_on_the_gpu() -> Files:
    rows = [f"0,{i * 50},{2 - 0.01 * i:.3f},{8000 + i * 120:.0f}\n" for i in range(60)]
    return {"metrics.csv": "epoch,step,train_loss,gpu_mem_mb\n" + "".join(rows)}


def leak_on_the_host() -> Files:
    rows = [f"{i * 5}.0,99.1,{4000 + i * 90},30000\n" for i in range(80)]
    return {"usage.csv": "Elapsed time,CPU (%),Real (MB),Virtual (MB)\n" + "".join(rows)}


def explosion() -> Files:
    rows = []
    for i in range(180):
        norm = 0.5 if i < 150 else 0.5 * 1.35 ** (i - 150)
        loss = 3 - 0.005 * i if i < 158 else 3 + 0.8 * (i - 158)
        dead = i >= 175
        rows.append(
            json.dumps(
                {
                    "step": i,
                    "loss": float("nan") if dead else loss,
                    "grad_norm": float("nan") if dead else norm,
                    "dtype": "bf16",
                }
            )
        )
    return {"steps.jsonl": "\n".join(rows) + "\n"}


def outlier() -> Files:
    rows = [
        f"{i},{3 - 0.002 * i + (4 if i == 333 else 0) + 0.02 * noise(1):.4f},{0.5 * (30 if i == 333 else noise(0.1)):.3f}\n"
        for i in range(600)
    ]
    return {"steps.csv": "step,loss,grad_norm\n" + "".join(rows)}


def overflow() -> Files:
    rows = [
        f"[INFO] [deepspeed] OVERFLOW! Rank 0 Skipping step. Attempted loss scale: {2 ** (16 - i)}, reducing to {2 ** (15 - i)}\n"
        for i in range(24)
    ]
    return {"train.log": "".join(rows)}


def half_precision_nan() -> Files:
    rows = [
        f"{{'loss': {4 - 0.1 * i if i < 6 else 'nan'}, 'grad_norm': {1.1 if i < 6 else 'nan'}, 'epoch': {i / 100}}}\n"
        for i in range(12)
    ]
    return {"train.log": "TrainingArguments(fp16=True, bf16=False)\n" + "".join(rows)}


def collector() -> Files:
    rows = [f"{i},{0.35 * noise(0.005) + (1.2 if i % 97 == 50 else 0):.4f}\n" for i in range(800)]
    return {"steps.csv": "step,step_time_s\n" + "".join(rows)}


def saves() -> Files:
    rows = [
        megatron(i, 500 * noise() + (30000 if i % 100 == 0 and i else 0))
        + (f"saving checkpoint at iteration {i} to /mnt/ckpt\n" if i % 100 == 99 else "")
        for i in range(500)
    ]
    return {"train.log": "".join(rows)}


def recompiles() -> Files:
    rows = [
        f"step {i} loss 2.{i} step_time {8.1 if i % 2 else 0.4}s\n"
        f"V1103 12:00:{i:02d}.0 44 torch/_dynamo/guards.py:2] [1/{i}] [__recompiles] Recompiling function forward in m.py:10\n"
        f"V1103 12:00:{i:02d}.0 44 torch/_dynamo/guards.py:2] [1/{i}] [__recompiles]     - 1/0: tensor 'x' size mismatch at index 1\n"
        for i in range(20)
    ]
    return {"run.log": "".join(rows)}


def breaks() -> Files:
    return {
        "explain.txt": "Graph Count: 37\nGraph Break Count: 36\nReason: call_function print\neager 41.2 ms/iter\ncompiled 55.0 ms/iter\n"  # noqa: E501
    }


def slow_loader() -> Files:
    rows = [
        f"[01/01 10:{i // 6:02d}:{i % 6}0 d2]:  iter: {i * 20 + 19}  total_loss: 2.0  time: 1.5{i % 10}  data_time: 1.0{i % 7}  lr: 0.01\n"  # noqa: E501
        for i in range(40)
    ]
    return {"log.txt": "".join(rows)}


def retries() -> Files:
    rows = [
        json.dumps({"step": i, "tokens_per_sec": 9000 if i < 30 else 4000, "memory/alloc_retries": max(0, i - 29) * 3})
        for i in range(80)
    ]
    return {"m.jsonl": "\n".join(rows) + "\n"}


INCIDENTS: list[tuple[Callable[[], Files], str, float]] = [
    (leak_on_the_gpu, "memory-leak", 0.8),
    (leak_on_the_host, "memory-leak", 0.8),
    (explosion, "grad-explosion", 0.7),
    (outlier, "bad-batch", 0.5),
    (overflow, "loss-scale-collapse", 0.7),
    (half_precision_nan, "fp16-overflow", 0.6),
    (saves, "checkpoint-stall", 0.6),
    (recompiles, "recompilation", 0.8),
    (breaks, "graph-breaks", 0.8),
    (slow_loader, "input-starved", 0.8),
    (retries, "allocator-churn", 0.8),
]


@pytest.mark.parametrize(("incident", "cause", "least"), INCIDENTS, ids=lambda v: getattr(v, "__name__", None))
def test_the_mechanism_is_named(incident: Callable[[], Files], cause: str, least: float, tmp_path: Path) -> None:
    for name, text in incident().items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    diagnosis = diagnose(str(tmp_path), cache=False)
    assert diagnosis.ranked[0] == cause
    assert not diagnosis.healthy
    sure = {h.cause: h.probability for h in diagnosis.hypotheses}
    assert sure.get(cause, 0.0) >= least


def test_pauses_at_a_steady_period_without_a_word_are_asked_about(tmp_path: Path) -> None:
    for name, text in collector().items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    diagnosis = diagnose(str(tmp_path), cache=False)
    assert diagnosis.state is State.UNCLEAR and diagnosis.next
    assert "python-gc-pauses" in diagnosis.ranked[:2]


CALM: list[tuple[Callable[[], Files], bool]] = [
    (healthy_titan, True),  # it logs its MFU: a yardstick
    (healthy_megatron, False),
    (healthy_trainer, False),
    (healthy_with_rare_saves, False),
    (healthy_loss_scale, False),
    (healthy_wait_for_queued_work, False),
]


@pytest.mark.parametrize(("incident", "yardstick"), CALM, ids=lambda v: getattr(v, "__name__", None))
def test_calm_logs_are_never_sick_and_proven_only_with_a_yardstick(
    incident: Callable[[], Files], yardstick: bool, tmp_path: Path
) -> None:
    for name, text in incident().items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    diagnosis = diagnose(str(tmp_path), cache=False)
    assert diagnosis.state is not State.SICK
    assert bool(diagnosis.limit) is yardstick
    if (
        diagnosis.state is State.HEALTHY and not yardstick
    ):  # the log is in line, and says that it cannot tell how fast that is
        assert not any(p.whole for p in diagnosis.proofs) and "not in this file" in diagnosis.proofs[0].says


def test_a_drop_that_nobody_complained_of_is_no_verdict_by_base_rate(tmp_path: Path) -> None:
    for name, text in drop().items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    diagnosis = diagnose(str(tmp_path), cache=False)
    assert diagnosis.state is State.UNCLEAR
    assert diagnosis.next
    complained = diagnose(str(tmp_path), facts=["symptom=throughput fell last night"], cache=False)
    assert "straggler-rank" in complained.ranked[:5]


def test_a_weak_symptom_alone_gives_no_sure_answer(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_text(
        "".join(f" {i}%|## | {i * 10}/1000 [10:00<12:00,  {1 + 0.02 * i:.2f}s/it]\n" for i in range(1, 90))
    )
    diagnosis = diagnose(str(tmp_path), cache=False)
    assert diagnosis.state is State.UNCLEAR
    assert diagnosis.next
