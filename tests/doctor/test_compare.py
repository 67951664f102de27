"""What changed between two runs, in order of seconds, with the cause."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from stallwise.doctor.compare import compare
from stallwise.evidence.evidence import Evidence
from stallwise.evidence.fact import Source
from stallwise.evidence.ledger import Category, Ledger
from stallwise.surfaces.cli import main


def log(path: Path, step_s: float, data_s: float = 0.001, workers: int = 8) -> str:
    rows = "".join(
        f"Epoch: [0][{i}/100]\tTime {step_s:.3f} (1)\tData {data_s:.3f} (1)\tLoss 6.9 (7.0)\n" for i in range(20)
    )
    path.write_text(f"Namespace(workers={workers})\n{rows}", encoding="utf-8")
    return str(path)


def test_a_regression_is_explained_by_its_part(tmp_path: Path) -> None:
    good, bad = log(tmp_path / "a.log", 0.5), log(tmp_path / "b.log", 0.9, 0.401, 0)
    result = compare([good], [bad])
    assert result.metric == "step time"
    assert result.slower == pytest.approx(0.8, rel=0.01)
    first = result.regressions[0]
    assert first.delta_s == pytest.approx(0.4, rel=0.01)
    assert any(c.what == "waiting for the batch" and c.cause == "input-starved" for c in result.regressions)
    assert any(c.what == "run.loader_workers" and (c.good, c.bad) == ("8", "0") for c in result.setup)
    assert result.unexplained_s == pytest.approx(0.0, abs=1e-6)


def test_the_other_way_round_is_an_improvement(tmp_path: Path) -> None:
    good, bad = log(tmp_path / "a.log", 0.9, 0.401), log(tmp_path / "b.log", 0.5)
    result = compare([good], [bad])
    assert result.slower is not None and result.slower < 0
    assert result.improvements and not [c for c in result.regressions if c.delta_s]


def test_the_same_run_differs_in_nothing(tmp_path: Path) -> None:
    one = log(tmp_path / "a.log", 0.5)
    result = compare([one], [one])
    assert result.slower == 0.0 and result.changes == () and result.setup == ()


def test_the_gate(tmp_path: Path) -> None:
    good, bad = log(tmp_path / "a.log", 0.500), log(tmp_path / "b.log", 0.525)
    runner = CliRunner()
    assert runner.invoke(main, ["compare", good, bad, "--fail-on", "3%"]).exit_code == 1
    assert runner.invoke(main, ["compare", good, bad, "--fail-on", "10%"]).exit_code == 0
    answer = json.loads(runner.invoke(main, ["compare", good, bad, "--json"]).output)
    assert answer["slower"] == pytest.approx(0.05) and answer["regressions"]


def test_two_cards_are_compared_by_their_data_sheets(tmp_path: Path) -> None:
    for name, gpu, tps in (("a", "a100-80gb", 3000), ("b", "h100", 6600)):
        (tmp_path / f"{name}.toml").write_text(f'gpu = "{gpu}"\ntokens_per_s = {tps}\n', encoding="utf-8")
    result = compare([str(tmp_path / "a.toml")], [str(tmp_path / "b.toml")])
    assert result.slower is not None and result.slower < -0.5
    assert "the matrix rate" in next(c.because for c in result.setup if c.what == "gpu")


def test_categories_of_two_ledgers_sum_to_the_difference() -> None:
    from stallwise.doctor.compare import compared
    from stallwise.doctor.examine import examine

    def run_of(**seconds: float) -> Evidence:
        evidence = Evidence(inputs=["x"])
        evidence.add([Ledger({Category[k.upper()]: v for k, v in seconds.items()}, Source("x"))])
        return evidence

    good, bad = examine(run_of(compute=0.06, input_wait=0.0)), examine(run_of(compute=0.058, input_wait=0.061))
    result = compared(good, bad)
    assert [c.what for c in result.changes if c.delta_s] == ["input wait", "compute"]
    assert sum(c.delta_s or 0.0 for c in result.changes) == pytest.approx(0.059)
    assert result.slower == pytest.approx(0.119 / 0.06 - 1)


def test_bundles_of_different_kinds_are_compared_by_their_step(tmp_path: Path) -> None:
    one = log(tmp_path / "a.log", 0.5)
    (tmp_path / "b.toml").write_text('step_time = "750ms"\n', encoding="utf-8")
    result = compare([one], [str(tmp_path / "b.toml")])
    assert result.metric == "step time" and result.slower == pytest.approx(0.5, rel=0.01)


def test_kernels_alone_are_compared_by_name() -> None:
    from stallwise.doctor.compare import compared
    from stallwise.doctor.examine import examine
    from stallwise.evidence.catalog import kernel
    from stallwise.evidence.fact import Fact, Scope

    def profile(**seconds: float) -> Evidence:
        evidence = Evidence(inputs=["x"])
        evidence.add([Fact(kernel.TIME, s, Source("x"), Scope(kernel=name)) for name, s in seconds.items()])
        return evidence

    result = compared(examine(profile(gemm=2e-3, softmax=1e-3)), examine(profile(gemm=3e-3, softmax=1e-3)))
    assert result.metric == "kernel time" and result.slower == pytest.approx(1 / 3)
    assert [c.what for c in result.regressions] == ["kernel gemm"]
