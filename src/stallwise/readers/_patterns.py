"""What readers keep as data: books beside them, and `patterns/*.toml`, how programs put things into their lines, one file a reader."""

from __future__ import annotations

import re
import tomllib
from functools import cache
from importlib.resources import files
from typing import Any

_PART = re.compile("«(.+?)»")


@cache
def document(name: str) -> dict[str, Any]:
    """A book as it is written."""
    return tomllib.loads(files("stallwise.readers").joinpath(f"{name}.toml").read_text(encoding="utf-8"))


def entries(book: str) -> dict[str, dict[str, Any]]:
    """The expressions of one file with their samples."""
    return document(f"patterns/{book}")


def patterns(book: str) -> dict[str, re.Pattern[str]]:
    """The same, ready; capitals count only where the entry says so. What stands in «» is a part that many have."""
    parts = document("pattern_parts")
    return {
        name: re.compile(_PART.sub(lambda m: parts[m[1]], entry["match"]), 0 if entry.get("case") else re.IGNORECASE)
        for name, entry in entries(book).items()
    }
