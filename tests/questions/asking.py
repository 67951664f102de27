"""Asks the questions of the matrix as a user would, in this process, and says what an answer lacks.

A question stands in several wordings. `by = "diagnose"` (the default) states each of them beside `facts`, `files` or a pasted
`text`; `by = "explain"` looks each of them up. `run` is the command that works the number out, asked once.
"""

from __future__ import annotations

import json
import re
import shlex
import tempfile
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from click.testing import CliRunner

from stallwise.doctor.examine import diagnose
from stallwise.doctor.findings.diagnosis import Diagnosis, State
from stallwise.doctor.findings.finding import Finding
from stallwise.drill.explain import explained
from stallwise.errors import StallwiseError
from stallwise.render.text import to_text
from stallwise.surfaces.cli import main

HERE = Path(__file__).parent
REPO = HERE.parents[1]
# What is right today, a little below the count of it; raise both when more is understood.
LEAST_COMPLAINTS = 0.985
LEAST_LOOKED_UP = 0.99
WIDE = 4000  # letters in a line: what is looked for is never broken over two


@dataclass(frozen=True)
class Question:
    """One item of the matrix."""

    id: str
    seed: str
    wordings: tuple[str, ...]
    by: str = "diagnose"
    theme: str = ""  # the file it stands in
    facts: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    texts: tuple[str, ...] = ()  # what is pasted, a file each
    causes: tuple[str, ...] = ()  # what a right answer may name
    first: int = 1  # among so many of its first
    says: tuple[str, ...] = ()  # what must be read in it
    fixes: tuple[str, ...] = ()  # in this order
    trap: str = ""  # the tempting move it warns of
    artifact: str = ""  # what it asks for first
    unclear: bool = False  # nobody could tell: it must say so
    run: str = ""
    prints: tuple[str, ...] = ()
    number: dict[str, Any] = field(default_factory=dict)  # in the command's JSON: at, value, within
    departs: str = ""  # why a right answer differs from what the seed says


@cache
def questions() -> tuple[Question, ...]:
    """All of them, by file."""
    found = []
    for file in sorted(HERE.glob("*.toml")):
        for row in tomllib.loads(file.read_text(encoding="utf-8"))["question"]:
            if "text" in row:
                row["texts"] = [row.pop("text")]
            values = {k: tuple(v) if isinstance(v, list) else v for k, v in row.items()}
            found.append(Question(**values, theme=file.stem))
    return tuple(found)


def lacking(question: Question, words: str, folder: Path) -> list[str]:
    """What the answer to one wording lacks; nothing where it is right."""
    if question.by == "explain":
        try:
            text = str(explained(words)["text"])
        except StallwiseError as error:
            return [f"no page: {error.problem}"]
        return [f"does not say /{wanted}/" for wanted in question.says if not re.search(wanted, text, re.I)]
    try:
        answer = diagnosed(question, words, folder)
    except StallwiseError as error:
        return [f"refused: {error.problem}"]
    if answer.state is State.HEALTHY:
        return ["an all-clear"]
    if question.unclear:
        return [] if answer.state is State.UNCLEAR else [f"sure of {answer.ranked[:1]}"]
    return list(_shortfalls(question, answer))


def diagnosed(question: Question, words: str, folder: Path) -> Diagnosis:
    """The doctor's answer to one wording."""
    files = [str(REPO / name) for name in question.files]
    for place, text in enumerate(question.texts):
        path = folder / f"{question.id}.{place}.txt"
        if not path.exists():
            path.write_text(text, encoding="utf-8")
        files.append(str(path))
    return diagnose(*files, facts=[*question.facts, f"symptom={words}"], workers=1, cache=False)


def _shortfalls(question: Question, answer: Diagnosis) -> Iterator[str]:
    named = answer.ranked[: question.first]
    right = [f for f in answer.findings if f.cause in question.causes]
    if not any(cause in question.causes for cause in named):
        yield f"names {', '.join(answer.ranked[:3]) or 'nothing'}"
    elif (question.fixes or question.trap) and not right:
        yield "argues nothing"
    elif right:
        yield from _fixes(question, right[0])
    if question.artifact:
        asked = answer.next[0].capture.artifact if answer.next else "nothing"
        if not re.search(question.artifact, asked, re.I):
            yield f"asks first for {asked}"
    if question.says:
        text = to_text(answer, width=WIDE)
        yield from (f"does not say /{wanted}/" for wanted in question.says if not re.search(wanted, text, re.I))


def _fixes(question: Question, finding: Finding) -> Iterator[str]:
    actions, place = [fix.action for fix in finding.fixes], 0
    joined = "\n".join(actions)
    for wanted in question.fixes:
        found = re.compile(wanted, re.I).search(joined, place)
        if found is None:
            yield f"no fix like /{wanted}/ in its place"
        else:
            place = found.end()
    if question.trap and not re.search(question.trap, finding.avoid, re.I):
        yield f"does not warn of /{question.trap}/"


def run_lacking(question: Question) -> list[str]:
    """What the command that works the number out lacks."""
    if not question.run:
        return []
    words = shlex.split(question.run)
    answer = CliRunner(env={"COLUMNS": "200", "NO_COLOR": "1"}).invoke(main, words)
    if answer.exit_code:
        return [f"{question.run}: {answer.exception!r}"]
    missing = [f"{question.run} prints no /{w}/" for w in question.prints if not re.search(w, answer.stdout, re.I)]
    if question.number:
        found: Any = json.loads(CliRunner().invoke(main, [*words, "--json"]).stdout)
        for key in question.number["at"].split("."):
            found = found[key]
        value = question.number["value"]
        if abs(found - value) > question.number["within"] * abs(value):
            missing.append(f"{question.run}: {question.number['at']} is {found}, not {value}")
    return missing


@dataclass
class Walk:
    """What came of asking everything."""

    asked: int = 0
    right: int = 0
    shortfalls: list[str] = field(default_factory=list)
    failed_runs: list[str] = field(default_factory=list)
    by_theme: dict[str, list[int]] = field(default_factory=dict)


def walk(chosen: tuple[Question, ...]) -> Walk:
    """Asks every wording of the chosen questions, and every command once."""
    told = Walk()
    with tempfile.TemporaryDirectory() as place:
        for question in chosen:
            count = told.by_theme.setdefault(question.theme, [0, 0])
            for words in question.wordings:
                missing = lacking(question, words, Path(place))
                told.asked += 1
                told.right += not missing
                count[0] += not missing
                count[1] += 1
                told.shortfalls += [f"{question.id}: {words}: {m}" for m in missing]
            told.failed_runs += [f"{question.id}: {m}" for m in run_lacking(question)]
    return told
