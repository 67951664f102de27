"""Commands in Markdown files: found, run, compared, and rewritten when asked.

A block of kind `console` holds `$ command` lines, each followed by what it prints (stdout; stderr is progress). Every
command is run from the root of the repository in a scratch folder that holds `examples/`, 110 columns wide. A line `...`
stands for any number of lines. A block of kind `sh` is checked for commands and options that exist, and is not run:
it may need a GPU, a server or a secret. STALLWISE_UPDATE_DOCS=1 rewrites the outputs instead of comparing them.
"""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from pathlib import Path

REPO = Path(__file__).parents[2]
FILES = [REPO / "README.md", *sorted((REPO / "docs").glob("*.md"))]
_BLOCK = re.compile(r"^```(console|sh)[^\n]*\n(.*?)^```\s*$", re.M | re.S)


@dataclass(frozen=True)
class Step:
    """One command and what it is said to print."""

    file: Path
    line: int
    command: str
    output: str

    def __str__(self) -> str:
        return f"{self.file.name}:{self.line}"


def blocks(kind: str) -> list[tuple[Path, int, str]]:
    """Every block of this kind with its place."""
    found = []
    for file in FILES:
        text = file.read_text(encoding="utf-8")
        for match in _BLOCK.finditer(text):
            if match[1] == kind:
                found.append((file, text.count("\n", 0, match.start()) + 1, match[2]))
    return found


def steps() -> list[Step]:
    """Every command that is run."""
    found = []
    for file, line, body in blocks("console"):
        parts = re.split(r"^\$ ", body, flags=re.M)
        at = line + 1 + parts[0].count("\n")
        for part in parts[1:]:
            first, _, rest = part.partition("\n")
            while first.endswith("\\"):
                more, _, rest = rest.partition("\n")
                first = first[:-1] + more.strip()
            found.append(Step(file, at, first, rest))
            at += part.count("\n")
    return found


def matches(said: str, seen: str) -> bool:
    """The same lines, where `...` stands for any number of them."""
    pattern = "".join(
        r"(?:.*\n)*" if line.strip() == "..." else re.escape(line.rstrip()) + r"[ \t]*\n"
        for line in said.rstrip("\n").split("\n")
    )
    return re.fullmatch(pattern if said.strip() else r"\s*", seen.rstrip("\n") + "\n") is not None


def inline() -> list[tuple[Path, str]]:
    """Calls of stallwise between backticks in running text and tables."""
    found: dict[tuple[Path, str], None] = {}
    for file in FILES:
        text = _BLOCK.sub("", file.read_text(encoding="utf-8"))
        for call in re.findall(r"`(stallwise [a-z][^`\n]*)`", text):
            found[file, call] = None
    return list(found)


def mentioned(body: str) -> list[list[str]]:
    """Calls of stallwise in a block of shell, as words."""
    joined = re.sub(r"\\\n\s*", " ", body)
    found = []
    for line in joined.splitlines():
        for call in re.findall(r'(?<![\w./-])stallwise (?=[a-z-])([^|;&>#)"]*)', line):
            found.append(shlex.split(call))
    return found


def rewritten(file: Path, outputs: dict[int, str]) -> str:
    """The file with the outputs of its commands (by line) put in anew."""
    lines = file.read_text(encoding="utf-8").split("\n")
    known = {s.line: s for s in steps() if s.file == file}
    result, i = [], 0
    while i < len(lines):
        step = known.get(i + 1)
        if step is None or not lines[i].startswith("$ "):
            result.append(lines[i])
            i += 1
            continue
        result.append(lines[i])
        while lines[i].endswith("\\"):
            i += 1
            result.append(lines[i])
        i += 1
        old = []
        while not lines[i].startswith(("```", "$ ")):
            old.append(lines[i])
            i += 1
        seen = outputs.get(step.line, "").rstrip("\n")
        keep = "..." in [x.strip() for x in old]  # shortened by hand
        result += old if keep else seen.split("\n") if seen else []
    return "\n".join(result)
