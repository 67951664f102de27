"""What a measured step moves in the planner's constants."""

from __future__ import annotations

from typing import Any

from stallwise.render.blocks import Column, Document, Verdict, number, seconds, sentence, table
from stallwise.render.blocks import document as filled


def document(answer: dict[str, Any], kept_in: str = "", *, deep: bool = False) -> Document:
    """The answer of `plan calibrate`."""
    what = ("measured ", seconds(answer["measured_s"]), f" ({answer['source']}); predicted ", seconds(answer["before_s"]),
            " before, ", seconds(answer["after_s"]), " after")  # fmt: skip
    moved = ((name, f"{old:.3g}", f"{new:.3g}", meaning) for name, (old, new, meaning) in answer["moved"].items())
    parts = ((name, seconds(old_s), seconds(new_s)) for name, (old_s, new_s) in answer["mechanisms"].items())
    return filled(
        Verdict(what, answer["verdict"], f"Use them: stallwise plan train --constants {kept_in} ..." if kept_in else ""),
        table("Parts of the step", (Column("part"), number("before"), number("after")), parts),
        table("Constants", (Column("constant"), number("before"), number("after"), sentence("meaning", 1)), moved),
        verb="plan calibrate",
    )  # fmt: skip
