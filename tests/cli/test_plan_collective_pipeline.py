"""The plan sub-commands for collectives and pipelines, as a user calls them."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner, Result

from stallwise.errors import BadRequest, UnreadableInput
from stallwise.surfaces.cli import main


def call(*args: str) -> Result:
    return CliRunner().invoke(main, ["plan", *args], catch_exceptions=True)


def test_two_gigabytes_over_512_gpus_are_answered_with_an_interval() -> None:
    result = call("collective", "allreduce", "2GB", "--gpus", "512", "--json")
    assert result.exit_code == 0, result.output
    answer = json.loads(result.output)
    best = answer["expected"]
    assert best["low_s"] < best["seconds"] < best["high_s"]
    # The cards of eight GPUs carry nearly 2 x 2 GB: 10.6 ms at line rate is the floor.
    assert 2 * 2e9 * 63 / 64 / (8 * 50e9) < best["seconds"] < 0.02
    assert answer["algorithms"][0]["algorithm"] == best["algorithm"]


def test_a_measured_cliff_is_told_from_latency() -> None:
    seen = [f"--seen={n}={t}ms" for n, t in ((64, 45), (128, 52), (256, 61), (512, 340))]
    result = call("collective", "allreduce", "1GB", "--gpus", "512", *seen)
    assert "not latency" in result.output
    assert "from 256 to 512" in result.output


def test_an_oversubscribed_pod_shows_as_a_cliff() -> None:
    result = call("collective", "allreduce", "1GB", "--gpus", "512", "--level", "256:6", "--json")
    (cliff,) = [c for c in json.loads(result.output)["cliffs"] if c["below"] == 256]
    assert "pod" in cliff["reason"] and cliff["ratio"] > 4


@pytest.mark.parametrize(
    "args",
    [
        ("collective", "allsum", "1GB"),
        ("collective", "allreduce", "much"),
        ("collective", "allreduce", "1GB", "--gpus", "0"),
        ("collective", "allreduce", "1GB", "--gpu", "h1000"),
        ("collective", "allreduce", "1GB", "--seen", "512"),
        ("pipeline", "--stages", "0"),
        ("pipeline", "--schedule", "2f2b"),
        ("pipeline", "--split", "a,b"),
        ("pipeline", "--model", "no-such-model"),
    ],
)
def test_nonsense_gets_a_sentence_not_a_traceback(args: tuple[str, ...]) -> None:
    result = call(*args)
    assert isinstance(result.exception, BadRequest), result.exception
    assert result.exception.problem


def test_a_pipeline_is_drawn_and_both_bubbles_are_named(tmp_path: Path) -> None:
    target = tmp_path / "schedule.svg"
    result = call("pipeline", "--stages", "4", "--microbatches", "8", "--svg", str(target))
    assert result.exit_code == 0, result.output
    assert "27.3% of the step = 37.5% of useful time" in result.output
    drawing = ElementTree.fromstring(target.read_text(encoding="utf-8"))
    boxes = [
        e for e in drawing.iter() if e.tag.endswith("rect") and e.find("{http://www.w3.org/2000/svg}title") is not None
    ]
    assert len(boxes) == 4 * 8 * 2  # a forward and a backward per stage and microbatch


def test_validate_refuses_what_is_not_a_table(tmp_path: Path) -> None:
    empty = tmp_path / "empty.csv"
    empty.write_text("a,b\n")
    assert isinstance(call("validate", str(empty), "--kind", "bubbles").exception, UnreadableInput)
    assert isinstance(call("validate", str(tmp_path / "none.csv"), "--kind", "bubbles").exception, UnreadableInput)
    assert isinstance(call("validate", str(empty), "--kind", "nothing").exception, BadRequest)


def test_validate_prints_the_contracted_figures(tmp_path: Path) -> None:
    table = tmp_path / "rows.csv"
    table.write_text(
        "row_id,citation,model,stages_p,microbatches_m,schedule,bubble_rate\nb1,paper,1.5B,8,24,1F1B,0.2431\n"
    )
    figures = json.loads(call("validate", str(table), "--kind", "bubbles", "--json").output)
    for key in (
        "rows",
        "predicted",
        "mean_abs_pct",
        "median_abs_pct",
        "bias_pct",
        "inside_interval_share",
        "by_source",
    ):
        assert key in figures
    assert figures["predicted"] == 1 and figures["mean_abs_points"] < 0.05
