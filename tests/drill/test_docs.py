"""The round that the page quotes is the round that is played."""

from __future__ import annotations

import re
from pathlib import Path

from stallwise.drill import rubric
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


def test_the_page_tells_the_bars_that_are_used() -> None:
    text = PAGE.read_text(encoding="utf-8")
    for words in (
        f"under {rubric.IN_TIME_S:.0f} s",
        f"under {rubric.EARLY_S:.0f} s",
        f"{rubric.PASS_POINTS} of 12",
        f"{rubric.STRONG_POINTS} of 12",
    ):
        assert words in text, words
    for about in rubric.DIMENSIONS.values():
        assert about in text, about
