"""Tables of codes: what a number or a name of a library's, driver's or scheduler's own list stands for.

One TSV per table in `codes/`, an entry a line. A signature names the table of its slot; whoever holds a bare number asks `code_of`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Code:
    """One entry."""

    table: str
    number: int | None
    name: str
    means: str
    fault: str = ""  # where the trouble usually lies, in the table's own classes
    role: str = ""  # where the code itself says that it only follows, or proves
    action: str = ""


@cache
def codes_of(table: str) -> dict[str, Code]:
    """Every code of one table by its number and by its name in small letters."""
    found: dict[str, Code] = {}
    for row in rows_of(table):
        number, *words = (*row, "", "", "", "")[:6]
        code = Code(table, int(number) if number else None, *words)
        for word in (number, code.name.lower()):
            if word:
                found.setdefault(word, code)
    return found


def rows_of(table: str) -> list[list[str]]:
    """The entries of a table: below its source and its titles, one a line."""
    text = (Path(__file__).parent / "codes" / f"{table}.tsv").read_text(encoding="utf-8")
    return [line.split("\t") for line in text.splitlines()[2:]]


@lru_cache(maxsize=4096)
def code_of(table: str, written: str | float) -> Code | None:
    """The entry that a number or a name stands for; None where the table lacks it."""
    word = f"{written:g}" if isinstance(written, float | int) else written.strip().lower()
    if word.startswith("0x"):
        try:
            word = str(int(word, 16))
        except ValueError:
            return None
    return codes_of(table).get(word)
