"""The live view: lateness, worsening, creep and hangs from records that a fake job wrote."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from stallwise.doctor.live import load, look
from stallwise.errors import UnreadableInput
from stallwise.readers.records.rank_record import RankRecord
from stallwise.render.documents.live_view import as_prometheus, document
from stallwise.render.text import to_text
from stallwise.surfaces.cli.watch import command


def record(rank: int = 0, world: int = 1, steps: int = 200, **stages: float) -> RankRecord:
    """A rank whose steps all look alike: 0.1 s, with these stages."""
    spans = {"batch_wait": 0.005, "forward": 0.03, "backward": 0.05, "optimizer": 0.01, **stages}
    made = RankRecord(rank=rank, world=world)
    for n in range(steps):
        made.step.append(n)
        made.time_s.append(1000 + 0.1 * n)
        made.duration_s.append(max(0.1, sum(spans.values())))
        made.host_s.append(dict(spans))
        made.span_s.append({})
        made.elsewhere_s.append({})
        made.gauges.append({})
    return made


def test_the_late_rank_is_named_with_its_stage_and_cost() -> None:
    ranks = [record(r, 4, backward=0.09) for r in range(4)]
    ranks[2] = record(2, 4, batch_wait=0.045, backward=0.05)  # the others wait 40 ms for it in their backward
    late = look(ranks, now_s=1020).late
    assert late is not None and (late.rank, late.stage) == (2, "batch_wait")
    assert late.seconds == pytest.approx(0.04, rel=0.05) and late.often_share == 1.0


def test_equal_ranks_have_no_straggler() -> None:
    assert look([record(r, 4) for r in range(4)], now_s=1020).late is None


def test_a_run_that_got_slower_says_where() -> None:
    one = record(steps=400)
    for n in range(300, 400):
        one.duration_s[n] = 0.15
        one.host_s[n]["batch_wait"] = 0.055
    view = look([one], now_s=1040)
    assert view.worse_ratio == pytest.approx(1.5) and view.worse_stage == "batch_wait"


def test_memory_that_keeps_rising_is_creep_and_warm_up_is_not() -> None:
    leaking, warming = record(), record()
    for n in range(0, 200, 5):
        leaking.gauges[n]["gpu_memory_bytes"] = 1e9 + 1e7 * n
        warming.gauges[n]["gpu_memory_bytes"] = 2e9 if n > 10 else 1e9
    assert look([leaking], now_s=1020).creep["gpu_memory_bytes"] > 5e8
    assert look([warming], now_s=1020).creep == {}


def test_silence_is_a_hang_and_names_who_is_behind() -> None:
    ranks = [record(r, 3, steps=200 if r != 1 else 150) for r in range(3)]
    ranks[1].stacks.append((150, 1100.0, 80.0, 'File "train.py", line 7 in all_reduce'))
    view = look(ranks, now_s=1020 + 300)
    assert view.hanging and view.behind == (1,)
    text = to_text(document(view))
    assert "HANG" in text and "Rank 1 stands here" in text and "all_reduce" in text
    assert not look(ranks, now_s=1021).hanging


def test_a_job_that_said_goodbye_does_not_hang() -> None:
    done = record()
    done.ended = "exit"
    assert not look([done], now_s=99999).hanging


def test_prometheus_text_is_readable_by_its_own_parser() -> None:
    from prometheus_client.parser import text_string_to_metric_families

    view = look([record(r, 2) for r in range(2)], now_s=1020)
    names = {family.name for family in text_string_to_metric_families(as_prometheus(view))}
    assert {"stallwise_step_seconds", "stallwise_stage_seconds", "stallwise_hang"} <= names


def test_the_command_reads_a_folder_of_files(tmp_path: Path) -> None:
    lines = [{"k": "run", "v": 1, "rank": 0, "world": 1, "t": 0, "env": {}}]
    lines += [{"k": "step", "n": n, "t": n * 0.1, "d": 0.1, "s": {"forward": 0.05}} for n in range(30)]
    lines += [{"k": "end", "n": 30, "t": 3, "why": "exit"}]
    (tmp_path / "rank-00000.jsonl").write_text(
        "\n".join(json.dumps(x, separators=(",", ":")) for x in lines) + '\n{"k":"st'
    )
    result = CliRunner().invoke(command, [str(tmp_path), "--once", "--json"])
    assert result.exit_code == 0 and json.loads(result.output)["step"] == 29
    with pytest.raises(UnreadableInput):
        load(tmp_path / "nothing")
