"""Types what once fell short and says what comes back: `python -m tests.questions.typed`."""

from __future__ import annotations

import re
import shlex
import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from click.testing import CliRunner

from stallwise.cli import main

ROWS = Path(__file__).parent / "rows" / "rows.toml"
SHOWN = 160  # letters of an answer's first line


@dataclass(frozen=True)
class Row:
    """One question: the items of the matrix that hold it, and a command with what must be read in its answer."""

    seed: str
    asked: str
    items: list[str]
    typed: str = ""
    says: str = ""
    departs: str = ""


@cache
def rows() -> tuple[Row, ...]:
    """All of them, in the order of the seeds."""
    return tuple(Row(**row) for row in tomllib.loads(ROWS.read_text(encoding="utf-8"))["row"])


def answer(row: Row) -> tuple[str, bool]:
    """What comes back, and whether it holds what it must."""
    told = CliRunner(env={"COLUMNS": "4000", "NO_COLOR": "1"}).invoke(main, shlex.split(row.typed))
    whole = told.stdout + (f"\n{told.exception!r}" if told.exception else "")
    cleared = "healthy" in whole.split("\n\n")[0].lower() and row.typed.startswith("diagnose")
    return whole, bool(re.search(row.says, whole, re.IGNORECASE)) and not cleared


if __name__ == "__main__":
    wrong = 0
    for place, row in enumerate(rows()):
        if not row.typed:
            print(f"{place:3} {row.seed} {row.asked}: by {', '.join(row.items)}")
            continue
        text, right = answer(row)
        wrong += not right
        first = next((line for line in text.splitlines() if line.strip()), "")
        print(
            f"{place:3} {row.seed} {row.asked}: {'right' if right else 'WRONG'}\n      {row.typed}\n      {first[:SHOWN]}"
        )
    print(f"{len(rows())} rows, {wrong} wrong")
