"""`stallwise whatif`: changes alone, together, in order; and what it says when nothing can be replayed."""

from __future__ import annotations

import json
from pathlib import Path

from click.testing import CliRunner, Result

from stallwise.cli import main

TRACE = str(Path(__file__).parents[2] / "examples" / "traces" / "loader_slow" / "trace.json.gz")


def ran(*words: str) -> Result:
    return CliRunner(env={"COLUMNS": "120", "NO_COLOR": "1"}).invoke(main, ["whatif", *words], prog_name="stallwise")


def test_without_options_everything_is_tried_and_the_fault_comes_first() -> None:
    answer = json.loads(ran(TRACE, "--json").stdout)
    assert answer["order"][0] == "no-input-wait"
    first = answer["alone"][0]
    assert first["gain"]["low_s"] < answer["clean_step_s"] - first["step_s"] < first["gain"]["high_s"]
    together = answer["together"]
    assert together["step_s"] <= min(one["step_s"] for one in answer["alone"]) + 1e-9
    assert 0 < answer["clean_step_s"] <= answer["traced_step_s"]


def test_asked_changes_are_answered_even_where_there_is_nothing_to_take_out() -> None:
    shown = ran(TRACE, "--no-input-wait", "--no-save", "--dtype", "bf16").stdout
    assert "no-input-wait" in shown and "without the profiler" in shown
    assert "no-save           there is none of it in this trace" in shown


def test_a_file_without_a_trace_is_refused_in_plain_words(tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    log.write_text("step 1 loss 2.0\n", encoding="utf-8")
    result = ran(str(log))
    assert result.exit_code != 0
    assert "Traceback" not in result.output
