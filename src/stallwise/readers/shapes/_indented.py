"""Blocks that a page of Markdown shows as code by indenting them, as they were before."""

from __future__ import annotations

from collections.abc import Sequence

INDENT = "    "
MOST_BYTES = 1 << 18  # people paste pages
MOSTLY = 0.5  # of the lines: a page that shows something, no program's layout with an indented part


def may_be_indented(head: bytes) -> bool:
    """A quick look: a short text with an indented line below an empty one."""
    return len(head) <= MOST_BYTES and (head.startswith(INDENT.encode()) or b"\n\n    " in head.replace(b"\r", b""))


def undented(lines: Sequence[str]) -> list[str] | None:
    """The lines with their blocks set flush; None where no such blocks make up the page."""
    told, shown, joined, inside = list(lines), 0, 0, False
    before = ""
    for at, line in enumerate(lines):
        if line.startswith(INDENT):
            begins = not before.strip() and not line.startswith(INDENT + " ")
            inside = inside or begins
            if inside:
                told[at], shown = line[len(INDENT) :], shown + 1
                joined += before.startswith(INDENT)
        elif line.strip():
            if line[0].isspace():
                return None
            inside = False
        before = line
    double_spaced = shown > 1 and joined < MOSTLY * (shown - 1)
    return told if shown and not double_spaced and shown >= MOSTLY * sum(bool(x.strip()) for x in lines) else None
