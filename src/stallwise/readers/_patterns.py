"""What readers keep as data: books beside them, and `patterns/*.toml`, how programs put things into their lines, one file a reader."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from stallwise.tables import table

_PART = re.compile("«(.+?)»")


@cache
def document(name: str) -> dict[str, Any]:
    """A book as it is written."""
    return table(Path(__file__).parent / f"{name}.toml")


def entries(table_name: str) -> dict[str, dict[str, Any]]:
    """The expressions of one file with their samples."""
    return document(f"patterns/{table_name}")


class Patterns(Mapping[str, re.Pattern[str]]):
    """The same, each ready when it is first asked for: most files need few of them.

    Capitals count only where the entry says so. What stands in «» is a part that many have.
    """

    def __init__(self, table_name: str) -> None:
        self._entries, self._ready = entries(table_name), dict[str, re.Pattern[str]]()

    def __getitem__(self, name: str) -> re.Pattern[str]:
        if name not in self._ready:
            entry, parts = self._entries[name], document("pattern_parts")
            match = _PART.sub(lambda m: parts[m[1]], entry["match"])
            self._ready[name] = re.compile(match, 0 if entry.get("case") else re.IGNORECASE)
        return self._ready[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)


patterns = cache(Patterns)  # several readers share a book
