"""Tables of codes: what a number or a name of a library's, driver's or scheduler's own list stands for.

One file per table in `codes/`. A signature names the table of its slot; whoever holds a bare number asks `code_of`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, lru_cache

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
def codes_of(table: str) -> dict[str, Code]:
    """Every code of one table by its number and by its name in small letters."""
    found: dict[str, Code] = {}
    document = book(f"codes/{table}.toml")
    for row in document["code"]:
        known = {key: row[key] for key in ("means", "fault", "role") if key in row}
        action = row.get("action", "")
        action = document.get("actions", {}).get(action, action)
        code = Code(table, row.get("code"), row.get("name", ""), action=action, **known)
        for word in (code.number, code.name.lower() or None):
            if word is not None:
                found.setdefault(str(word), code)
    return found


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
