"""Types what once fell short and says what comes back: `python -m tests.questions.typed`."""

from __future__ import annotations

import re
import shlex
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from click.testing import CliRunner
from tests.questions.asking import REPO, WIDE, lacking, questions

from stallwise.doctor.examine import diagnose
from stallwise.doctor.findings.diagnosis import State
from stallwise.render.text import to_text
from stallwise.surfaces.cli import main

ROWS = Path(__file__).parent / "rows" / "rows.toml"


@dataclass(frozen=True)
class Row:
    """One question: the items of the matrix that hold it, and a command with the causes and words of a right answer."""

    seed: str
    asked: str
    items: list[str]
    causes: list[str] = field(default_factory=list)
    first: int = 1  # one of the causes among so many of its first
    typed: str = ""  # nothing: the first item is asked, with what is pasted there
    says: str = ""
    departs: str = ""


@cache
def rows() -> tuple[Row, ...]:
    """All of them, in the order of the seeds."""
    return tuple(Row(**row) for row in tomllib.loads(ROWS.read_text(encoding="utf-8"))["row"])


def wrong(row: Row, folder: Path) -> list[str]:
    """What the answer lacks; nothing where it is right."""
    words = shlex.split(row.typed)
    if not words:
        item = next(q for q in questions() if q.id == row.items[0])
        return lacking(item, item.wordings[0], folder)
    return list(_diagnosed(row, words[1:]) if words[0] == "diagnose" else _printed(row, words))


def _diagnosed(row: Row, words: list[str]) -> Iterator[str]:
    facts = [words[i + 1] for i, word in enumerate(words) if word == "--fact"]
    files = [str(REPO / word) for i, word in enumerate(words) if word != "--fact" and words[i - 1 : i] != ["--fact"]]
    answer = diagnose(*files, facts=facts, workers=1, cache=False)
    if answer.state is State.HEALTHY:
        yield "an all-clear"
    if row.causes and not set(row.causes) & set(answer.ranked[: row.first]):
        yield f"names {', '.join(answer.ranked[:3]) or 'nothing'}"
    if row.says and not re.search(row.says, to_text(answer, width=WIDE)):
        yield f"does not say /{row.says}/"


def _printed(row: Row, words: list[str]) -> Iterator[str]:
    told = CliRunner(env={"COLUMNS": str(WIDE), "NO_COLOR": "1"}).invoke(main, words)
    if told.exit_code:
        yield f"{told.exception!r}"
    elif not re.search(row.says, told.stdout):
        yield f"does not print /{row.says}/"


if __name__ == "__main__":
    from tempfile import TemporaryDirectory

    with TemporaryDirectory() as place:
        shortfalls = {at: (row, missing) for at, row in enumerate(rows()) if (missing := wrong(row, Path(place)))}
    for at, (row, missing) in shortfalls.items():
        print(f"{at:3} {row.seed} {row.asked}: {'; '.join(missing)}\n      {row.typed}")
    print(f"{len(rows())} rows, {len(shortfalls)} wrong")
