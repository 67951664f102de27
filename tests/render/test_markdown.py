"""Markdown reports: words stay words."""

from __future__ import annotations

import re

from stallwise.render.markdown import escaped, to_markdown
from tests.render.hostile import hostile


def test_markup_in_the_input_stays_text() -> None:
    text = to_markdown(hostile())
    outside = re.sub(r"(`{3,}).*?\1", "", text, flags=re.S)
    assert "<img" not in outside and "<script" not in outside and "<svg" not in outside


def test_a_table_cell_cannot_be_broken_out_of() -> None:
    assert escaped("a | b\nc") == "a \\| b c"


def test_a_command_cannot_close_its_block() -> None:
    diagnosis = hostile()
    fences = re.findall(r"^`{3,}", to_markdown(diagnosis), re.M)
    assert len(fences) == 2 * len(diagnosis.next)
