"""Prefixes go into the row, whatever the program; messages stay."""

from __future__ import annotations

import math

import pytest

from stallwise.readers.shapes.lines import Peeler, line_of, prefixes, rank_of_file, time_of

MESSAGE = "the message stays 12 of 14"


@pytest.mark.parametrize("prefix", [p for p in prefixes() if p.sample], ids=lambda p: p.name)
def test_every_sample_is_taken_off(prefix: object) -> None:
    sample = prefix.sample  # type: ignore[attr-defined]
    line = line_of(1, sample + MESSAGE, "x.log", Peeler({}))
    assert line.text.endswith(MESSAGE)
    assert line.text == MESSAGE


@pytest.mark.parametrize(
    ("text", "rank", "level", "node", "gpu"),
    [
        ("[rank8]:[E0819 14:55:31.100 ProcessGroupNCCL.cpp:632] [Rank 8] " + MESSAGE, 8, "error", None, None),
        ("node-01:22:23 [3] NCCL WARN " + MESSAGE, None, "warning", "node-01", 3),
        ("Mar  4 10:11:12 gpu7 kernel: [12.345678] " + MESSAGE, None, "", "gpu7", None),
        ("[1,5]<stderr>:2024-05-06 07:08:09,123 - root - ERROR - " + MESSAGE, 5, "error", None, None),
        ("(Worker_TP3 pid=991) WARNING 06-01 21:40:20 [worker.py:4] " + MESSAGE, 3, "warning", None, None),
        ("[default2]:[W socket.cpp:464] " + MESSAGE, 2, "warning", None, None),
        (MESSAGE, None, "", None, None),
    ],
)
def test_what_stood_in_front_is_in_the_row(
    text: str, rank: int | None, level: str, node: str | None, gpu: int | None
) -> None:
    line = line_of(1, text, "x.log", Peeler({}))
    assert (line.text, line.rank, line.level, line.node, line.gpu) == (MESSAGE, rank, level, node, gpu)


def test_a_second_line_of_the_same_shape_reads_the_same() -> None:
    peeler = Peeler({})
    lines = [line_of(n, f"[2024-02-08 01:20:0{n}] [rank{n}]: step {n}", "x", peeler) for n in range(1, 4)]
    assert [line.text for line in lines] == ["step 1", "step 2", "step 3"]
    assert [line.rank for line in lines] == [1, 2, 3]
    assert lines[2].time_s - lines[0].time_s == 2.0


@pytest.mark.parametrize(
    ("stamp", "seconds"),
    [
        ("2024-01-02T00:00:05.5Z", 86405.5),
        ("0102 00:00:05", 86405.0),
        ("Jan  2 00:00:05", 86405.0),
        ("01/02/2024-00:00:05", 86405.0),
        ("00:00:05", 5.0),
    ],
)
def test_clocks_of_every_form(stamp: str, seconds: float) -> None:
    assert time_of(stamp) == seconds


def test_no_clock_is_no_time() -> None:
    assert math.isnan(time_of("soon"))


def test_a_file_name_gives_the_rank() -> None:
    assert rank_of_file("logs/attempt_0/3/stderr.log") == 3
    assert rank_of_file("rank12.log") == 12
    assert rank_of_file("notes.txt") is None
