"""The items of the five documents, each with the command that a user would type (items.tsv), and how right its answer is.

Built on the matrix of questions: every item has one row here, in its first wording. `full`: the right cause or page with all that it
must say; `partial`: the right cause among the first three, or a page that says a part; `wrong`: neither. As a script it walks all.
"""

from __future__ import annotations

import re
import shlex
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from stallwise.doctor.findings.diagnosis import State
from stallwise.drill.explain import explained
from stallwise.errors import StallwiseError
from tests.questions.asking import Question, diagnosed, lacking, questions, run_lacking

TABLE = Path(__file__).parent / "items.tsv"
HEAD = ("id", "seed", "command")
AMONG = 3  # causes that a reader looks at


@dataclass(frozen=True)
class Item:
    """One row."""

    id: str
    seed: str
    command: str


def command_of(question: Question) -> str:
    """What a user types for an item, in its first wording; a pasted text is told by its file."""
    words = question.wordings[0]
    if question.by == "explain":
        return shlex.join(["stallwise", "explain", words])
    pasted = [f"{question.id}.{place}.txt" for place in range(len(question.texts))]
    facts = [part for fact in question.facts for part in ("--fact", fact)]
    return shlex.join(["stallwise", "diagnose", words, *question.files, *pasted, *facts])


def items() -> list[Item]:
    """As they stand in the table."""
    lines = TABLE.read_text(encoding="utf-8").splitlines()
    return [Item(*line.split("\t")) for line in lines[1:]]


def judged(question: Question, folder: Path) -> str:
    """full, partial or wrong."""
    words = question.wordings[0]
    missing = [*lacking(question, words, folder), *run_lacking(question)]
    if not missing:
        return "full"
    try:
        if question.by == "explain":
            text = str(explained(words)["text"])
            return "partial" if any(re.search(wanted, text, re.I) for wanted in question.says) else "wrong"
        answer = diagnosed(question, words, folder)
    except StallwiseError:
        return "wrong"
    near = answer.state is not State.HEALTHY and any(cause in question.causes for cause in answer.ranked[:AMONG])
    return "partial" if near else "wrong"


def walked(chosen: Sequence[Question]) -> dict[str, str]:
    """Each item with its judgement."""
    with tempfile.TemporaryDirectory() as place:
        return {question.id: judged(question, Path(place)) for question in chosen}


def write() -> None:
    """The table anew, from the matrix."""
    rows = ["\t".join((q.id, q.seed, command_of(q))) for q in questions()]
    TABLE.write_text("\n".join(["\t".join(HEAD), *rows]) + "\n", encoding="utf-8")


if __name__ == "__main__":
    if "--write" in sys.argv:
        write()
    else:
        found = walked(questions())
        print(Counter(found.values()), [i for i, how in found.items() if how == "wrong"])
        print("partial", [i for i, how in found.items() if how == "partial"])
