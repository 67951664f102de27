"""Tables of codes: what a number or a name of a library's, driver's or scheduler's own list stands for.

One file per table in `codes/`. A signature names the table of its slot; whoever holds a bare number asks `code_of`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

from stallwise.meaning.tables import tables_in
from stallwise.meaning.words import book


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
def tables() -> tuple[str, ...]:
    """Names of all tables."""
    return tuple(name for name, _ in tables_in("codes"))


@cache
def table(name: str) -> tuple[Code, ...]:
    """Every code of one table."""
    document = book(f"codes/{name}.toml")
    shared = document.get("actions", {})
    return tuple(_code(name, row, shared) for row in document["code"])


def _code(table: str, row: dict[str, Any], actions: dict[str, str]) -> Code:
    known = {key: row[key] for key in ("means", "fault", "role") if key in row}
    action = row.get("action", "")
    return Code(table, row.get("code"), row.get("name", ""), action=actions.get(action, action), **known)


def source_of(name: str) -> str:
    """Where the table comes from."""
    return str(book(f"codes/{name}.toml")["source"])


@cache
def _index(name: str) -> dict[str, Code]:
    found: dict[str, Code] = {}
    for code in table(name):
        if code.number is not None:
            found.setdefault(str(code.number), code)
        if code.name:
            found.setdefault(code.name.lower(), code)
    return found


@lru_cache(maxsize=4096)
def code_of(name: str, written: str | float) -> Code | None:
    """The entry that a number or a name stands for; None where the table lacks it."""
    word = f"{written:g}" if isinstance(written, float | int) else written.strip()
    if word.lower().startswith("0x"):
        try:
            word = str(int(word, 16))
        except ValueError:
            return None
    return _index(name).get(word.lower())
