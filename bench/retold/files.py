"""What a re-telling is: a case's files in, the same facts in other files out."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

CODE = (".py", ".sh", ".sbatch", ".ipynb")
TREES = (".json", ".jsonl", ".yaml", ".yml", ".toml", ".xml", ".ini", ".conf", ".env", ".properties")


@dataclass(frozen=True)
class File:
    """A file of a case; `data` where it is no text or no longer one."""

    name: str
    text: str = ""
    data: bytes | None = None

    @property
    def stem(self) -> str:
        return str(Path(self.name).with_suffix(""))

    def said(self, text: str, ending: str = "") -> File:
        """Other text, under another ending where one is named."""
        return File(self.stem + ending if ending else self.name, text)


Retelling = Callable[[list[File]], list[File]]
TELLINGS: dict[str, Retelling] = {}


def telling(change: Retelling) -> Retelling:
    """Keeps a change of whole cases under its name."""
    TELLINGS[change.__name__] = change
    return change


def of_each(fits: Callable[[File], bool]) -> Callable[[Callable[[File], File]], Retelling]:
    """Keeps a change of single files, for those that it fits."""

    def kept(change: Callable[[File], File]) -> Retelling:
        def all_files(files: list[File]) -> list[File]:
            return [change(f) if f.data is None and fits(f) else f for f in files]

        all_files.__name__, all_files.__doc__ = change.__name__, change.__doc__
        return telling(all_files)

    return kept


def is_table(file: File) -> bool:
    """Commas and a header over rows of the same length."""
    lines = [x for x in file.text.splitlines() if x.strip()]
    if len(lines) < 2 or "," not in lines[0] or file.name.endswith(CODE + TREES + (".md",)):
        return False
    widths = {len(next(csv.reader([x], skipinitialspace=True))) for x in lines}
    return len(widths) == 1 and not re.search(r"\d{3}", lines[0])


def is_printed(file: File) -> bool:
    """What a program or a person wrote line by line: no table, no tree, no code, no page of metrics."""
    structured = file.text.lstrip()[:1] in "{[<" and not re.match(r"\s*\[\d|\s*\[[A-Za-z]", file.text)
    named = file.name.endswith(CODE + TREES + (".csv", ".tsv", ".md"))
    return bool(file.text.strip()) and not (structured or named or is_table(file) or "# HELP" in file.text)


def is_text(file: File) -> bool:
    """Anything that is not code."""
    return bool(file.text.strip()) and not file.name.endswith(CODE)


def rows_of(file: File) -> list[list[str]]:
    """Header and rows, cells stripped."""
    return [[c.strip() for c in r] for r in csv.reader(file.text.splitlines(), skipinitialspace=True) if r]


def value(cell: str) -> object:
    """A cell as a program holds it."""
    if re.fullmatch(r"[-+]?\d+", cell):
        return int(cell)
    if re.fullmatch(r"[-+]?(\d+\.\d*|\.\d+|\d+)(e[-+]?\d+)?", cell, re.I):
        return float(cell)
    return cell or None
