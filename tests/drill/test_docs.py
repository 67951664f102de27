# ruff: noqa: E501
"""The round that the page quotes is the round that is played."""

from __future__ import annotations

import re
from pathlib import Path

from stallwise.drill import scoring
from stallwise.drill.repl import handle, opening
from stallwise.drill.round import start
from tests.drill.players import Clock

PAGE = Path(__file__).parents[2] / "docs" / "drill.md"


def test_the_quoted_round_is_what_the_program_says(tmp_path: Path) -> None:
    (quoted,) = re.findall(r"```round\n(.*?)\n```", PAGE.read_text(encoding="utf-8"), re.S)
    clock = Clock()
    played = start(8, clock, tmp_path / "r.jsonl")
    said = [opening(played)]
    for line in re.findall(r"^> (.+)$", quoted, re.M):
        clock.wait(20)
        said.append(f"> {line}\n{handle(played, line).says}")
    shown = re.sub(r"whole files: \S+\)", "whole files: ...)", "\n\n".join(said))
    assert shown.split("\n") == quoted.split("\n")


def test_the_page_tells_the_weights_that_are_used() -> None:
    text = PAGE.read_text(encoding="utf-8")
    for heading, points in (
        ("efficiency", scoring.EFFICIENCY),
        ("calibration", scoring.CALIBRATION),
        ("communication", scoring.COMMUNICATION),
    ):
        assert f"| {heading} | {points} |" in text
    exact = (scoring.NUMBER, scoring.FIXES, scoring.NOT_FIRST, scoring.FALSIFIER, scoring.SECOND)
    assert (
        f"| correctness | {sum(exact)} | number {exact[0]}, fixes {exact[1]}, what must not come first {exact[2]}, refutation {exact[3]}, second fault {exact[4]}"
        in text
    )
    assert sum((scoring.EFFICIENCY, scoring.CALIBRATION, scoring.COMMUNICATION, *exact)) == 100
