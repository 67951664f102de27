"""`stallwise whatif`: changes alone, together, in order; and what it says when nothing can be replayed."""

from __future__ import annotations

import json
from pathlib import Path

from click.testing import CliRunner, Result

from stallwise.doctor.findings.finding import Gain
from stallwise.doctor.findings.whatif import Tried, WhatIf
from stallwise.doctor.measures._replay_range import won_range_s
from stallwise.drill.artifacts.rank_traces import RankTrace
from stallwise.render.text import to_text
from stallwise.surfaces.cli import main

TRACE = str(Path(__file__).parents[2] / "examples" / "traces" / "loader_slow" / "trace.json.gz")


def ran(*words: str) -> Result:
    return CliRunner(env={"COLUMNS": "120", "NO_COLOR": "1"}).invoke(main, ["whatif", *words], prog_name="stallwise")


def test_without_options_everything_is_tried_and_the_fault_comes_first() -> None:
    answer = json.loads(ran(TRACE, "--json").stdout)
    assert answer["order"][0] == "no-input-wait"
    first = answer["alone"][0]
    won_s = answer["clean_step_s"] - first["step_s"]
    assert first["gain"]["low_s"] < won_s <= first["gain"]["high_s"] + 1e-9  # no gain exceeds the time it removes
    together = answer["together"]
    assert together["step_s"] <= min(one["step_s"] for one in answer["alone"]) + 1e-9
    assert 0 < answer["clean_step_s"] <= answer["traced_step_s"]


def test_asked_changes_are_answered_even_where_there_is_nothing_to_take_out() -> None:
    shown = ran(TRACE, "--no-input-wait", "--no-save", "--dtype", "bf16").stdout
    assert (
        "no-input-wait" in shown and "takes 120 ms (99.8 to 132 ms); " in shown
    )  # recording cost nothing: one step time
    assert "no-save  no checkpoint is written in this trace" in shown


def ranks(folder: Path, late_us: float) -> str:
    """Four ranks whose last comes late to every all-reduce; the others wait in it."""
    for rank in range(4):
        trace, late = RankTrace(rank, 4), late_us if rank == 3 else 0.0
        for number in range(6):
            begin = number * 12_000.0
            trace.kernel("nvjet_sm90_tst_256x128_64x4_2x1", begin + 400.0, 6_000.0 + late)
            arrives = 6_400.0 + late
            trace.collective("allreduce", 4e8, begin + arrives, 9_400.0 + late_us - arrives, 4)
            trace.step(number, begin, 11_900.0)
        (folder / f"rank-{rank}.json").write_text(trace.text(), encoding="utf-8")
    return str(folder)


def test_of_a_folder_the_late_rank_is_taken_out_of_the_whole_job(tmp_path: Path) -> None:
    answer = json.loads(ran(ranks(tmp_path, 1_500.0), "--no-late-rank", "--graphs", "--json").stdout)
    late = next(one for one in answer["alone"] if one["changes"] == ["no-late-rank"])
    assert late["gain"]["low_s"] <= 1.5e-3 <= late["gain"]["high_s"] * 1.05
    assert "rank 3" in late["meaning"] and answer["ranks"] == 4
    assert "other ranks set the pace" in answer["as_traced"]


def test_a_trace_by_itself_has_no_late_rank() -> None:
    answer = json.loads(ran(TRACE, "--no-late-rank", "--json").stdout)
    assert "give the folder" in answer["nothing"]["no-late-rank"] and not answer["alone"]


def test_what_costs_is_said_to_cost_and_what_wins_nothing_is_not_a_gain() -> None:
    def tried(name: str, won_s: float) -> Tried:
        return Tried((name,), name, Gain(0.8 * won_s, 1.2 * won_s, "replayed", won_s), 0.1 - won_s)

    answer = WhatIf("t", 3, "step", 0.1, 0.1, 0.1, 0.1, (tried("graphs", 1e-5), tried("dtype", -0.01)), None, ())
    shown = to_text(answer)
    assert "8.00 to 12.0 ms more" in shown and "  110 ms" in shown
    assert "nothing to notice" in shown


def test_no_gain_takes_the_whole_step() -> None:
    low, high = won_range_s(0.200, ("dtype",), step_s=0.257, busy_s=0.25)
    assert low < 0.200 < high < 0.24


def test_a_file_without_a_trace_is_refused_in_plain_words(tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    log.write_text("step 1 loss 2.0\n", encoding="utf-8")
    result = ran(str(log))
    assert result.exit_code != 0
    assert "Traceback" not in result.output
