"""Recorded and made-up runs whose numbers go wrong: the first answer names what moved first, and where."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stallwise.doctor.examine import diagnose, examine
from stallwise.doctor.findings.diagnosis import State
from stallwise.evidence.catalog import numerics as n
from stallwise.evidence.catalog import run
from stallwise.evidence.evidence import Evidence
from stallwise.evidence.fact import Fact, Series, Source

FIXTURES = Path(__file__).parents[2] / "fixtures" / "numerics"


@pytest.mark.parametrize(
    ("stem", "cause"),
    [
        ("numerics_fp16_overflow", "fp16-overflow"),
        ("numerics_fp16_no_scaler", "fp16-underflow"),
        ("numerics_bf16_same_init", "grad-explosion"),
        ("leak_kept_graph", "memory-leak"),
        ("fp8_long_context", "fp8-saturation"),
    ],
)
def test_recorded_runs_are_named(stem: str, cause: str) -> None:
    assert diagnose(str(FIXTURES / f"{stem}.json")).ranked[0] == cause


def test_fp8_names_the_layer_its_contexts_and_the_repair() -> None:
    diagnosis = diagnose(str(FIXTURES / "fp8_long_context.json"))
    finding = diagnosis.findings[0]
    assert diagnosis.evidence.text(n.FP8_LAYER) == "7"
    assert diagnosis.evidence.text(n.FP8_CONTEXTS) == "8,192, 32,768"
    assert "layer 7" in finding.headline and "8,192" in finding.headline
    assert "85.5" in finding.fixes[0].action and "per-row" in finding.fixes[0].action


def log(tmp_path: Path, rows: list[dict[str, float]]) -> str:
    path = tmp_path / "train.jsonl"
    path.write_text("\n".join(json.dumps(r) for r in rows) + "\n")
    return str(path)


def steady(count: int, seed: int = 1) -> list[dict[str, float]]:
    noise = np.random.default_rng(seed)
    return [
        {"step": i, "loss": 2.5 + 0.01 * noise.normal(), "grad_norm": 0.3 * (1 + 0.05 * noise.normal())}
        for i in range(count)
    ]


def test_a_steady_run_is_healthy(tmp_path: Path) -> None:
    assert diagnose(log(tmp_path, steady(200))).state is not State.SICK


def test_one_outlier_step_is_a_bad_batch(tmp_path: Path) -> None:
    rows = steady(200)
    rows[120] |= {"loss": 6.0, "grad_norm": 4.0}
    diagnosis = diagnose(log(tmp_path, rows))
    assert diagnosis.ranked[0] == "bad-batch"
    assert "step 120" in diagnosis.findings[0].headline


def test_a_gradient_that_grows_before_the_loss_is_an_explosion(tmp_path: Path) -> None:
    rows = steady(120)
    for i, norm in enumerate((1.0, 4.0, 20.0, 150.0, 900.0, 9000.0)):
        rows.append({"step": 120 + i, "loss": 2.5 + 0.02 * 3.0**i, "grad_norm": norm})
    rows += [{"step": 126 + i, "loss": float("nan"), "grad_norm": float("nan")} for i in range(4)]
    diagnosis = diagnose(log(tmp_path, rows))
    assert diagnosis.ranked[0] == "grad-explosion"
    assert diagnosis.evidence.text(n.FIRST_MOVER) == "gradient"


def test_a_scale_that_halves_for_ever_has_collapsed(tmp_path: Path) -> None:
    rows = [{"step": i, "loss": 2.5, "loss_scale": 65536.0 / 2**i} for i in range(24)]
    assert "loss-scale-collapse" in diagnose(log(tmp_path, rows)).ranked[:2]


def test_two_halvings_at_the_start_are_normal(tmp_path: Path) -> None:
    rows = [{"step": i, "loss": 2.5 - 0.01 * i, "loss_scale": 65536.0 / 2 ** min(i, 2)} for i in range(40)]
    assert diagnose(log(tmp_path, rows)).state is not State.SICK


def test_layer_statistics_as_safetensors_are_read(tmp_path: Path) -> None:
    values = {"layers.0.amax": [12.0], "layers.1.amax": [70000.0]}
    header, data = {}, b""
    for key, numbers in values.items():
        chunk = np.array(numbers, dtype="<f4").tobytes()
        header[key] = {"dtype": "F32", "shape": [1], "data_offsets": [len(data), len(data) + len(chunk)]}
        data += chunk
    text = json.dumps(header).encode()
    path = tmp_path / "stats.safetensors"
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)
    (tmp_path / "train.log").write_text("precision: fp16\nstep 1 loss nan\nstep 2 loss nan\n")
    diagnosis = diagnose(str(path), str(tmp_path / "train.log"))
    assert diagnosis.evidence.text(n.AMAX_LAYER) == "layers.1"
    assert diagnosis.ranked[0] == "fp16-overflow"


def test_bf16_does_not_overflow(tmp_path: Path) -> None:
    (tmp_path / "train.log").write_text("precision: bf16\n" + "".join(f"step {i} loss nan\n" for i in range(4)))
    found = diagnose(str(tmp_path / "train.log")).findings
    assert not any(f.cause == "fp16-overflow" and f.confidence >= 0.5 for f in found)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10_000), st.sampled_from([0.005, 0.05, 0.2]), st.sampled_from([0.05, 0.3, 0.6]))
def test_noise_alone_is_healthy(seed: int, loss_noise: float, norm_noise: float) -> None:
    noise = np.random.default_rng(seed)
    x = np.arange(int(noise.integers(60, 600)), dtype=float)
    loss = 2 + 5 * np.exp(-x / (len(x) / 6)) + noise.normal(0, loss_noise, len(x))
    norm = np.exp(noise.normal(0, norm_noise, len(x))) * (0.3 + 2 * np.exp(-x / (len(x) / 8)))
    evidence = Evidence()
    source = Source("log")
    evidence.add(
        [Series(run.LOSS, x, loss, source), Series(run.GRAD_NORM, x, norm, source), Fact(run.NAN_STEPS, 0.0, source)]
    )
    assert examine(evidence).state is not State.SICK
