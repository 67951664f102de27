"""Changes that are safe to make for the user: they keep what the program computes."""

from __future__ import annotations

import ast
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Edit:
    """Text between two places of a file, and what stands there instead. Lines from 1, columns in bytes from 0."""

    line: int
    column: int
    end_line: int
    end_column: int
    text: str


def set_keyword(call: ast.Call, name: str, value: str) -> Edit | None:
    """The call with `name=value`, whether it had that keyword or not; None where the call ends nobody knows."""
    if call.end_lineno is None or call.end_col_offset is None:
        return None
    given = next((k.value for k in call.keywords if k.arg == name), None)
    if given is not None:
        assert given.end_lineno is not None and given.end_col_offset is not None
        return Edit(given.lineno, given.col_offset, given.end_lineno, given.end_col_offset, value)
    # Behind the last argument, so that a comma or comment after it stays where it is.
    ends = [(a.end_lineno or 0, a.end_col_offset or 0) for a in (*call.args, *(k.value for k in call.keywords))]
    if not ends:
        return Edit(
            call.end_lineno, call.end_col_offset - 1, call.end_lineno, call.end_col_offset - 1, f"{name}={value}"
        )
    line, column = max(ends)
    if any(isinstance(a, ast.GeneratorExp) for a in call.args):
        return None  # f(x for x in y) needs brackets of its own before another argument
    return Edit(line, column, line, column, f", {name}={value}")


def edited(text: str, edits: list[Edit]) -> str:
    """The text with every edit made, from the end to the beginning; of two that touch the same place the first wins."""
    lines = text.encode().splitlines(keepends=True)
    done: list[Edit] = []
    for edit in sorted(set(edits), key=lambda e: (e.line, e.column), reverse=True):
        if any((edit.end_line, edit.end_column) > (d.line, d.column) for d in done):
            continue
        before, after = lines[edit.line - 1][: edit.column], lines[edit.end_line - 1][edit.end_column :]
        lines[edit.line - 1 : edit.end_line] = [before + edit.text.encode() + after]
        done.append(edit)
    return b"".join(lines).decode()
