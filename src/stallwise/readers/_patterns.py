"""How programs put things into their lines: `patterns/*.toml`, one file a reader. Lines that an expression fits are its test."""

from __future__ import annotations

import re
import tomllib
from functools import cache
from importlib.resources import files
from typing import Any


@cache
def entries(book: str) -> dict[str, dict[str, Any]]:
    """The expressions of one file with their samples."""
    text = files("stallwise.readers").joinpath("patterns", f"{book}.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


def patterns(book: str) -> dict[str, re.Pattern[str]]:
    """The same, ready; capitals count only where the entry says so."""
    return {
        name: re.compile(entry["match"], 0 if entry.get("case") else re.IGNORECASE)
        for name, entry in entries(book).items()
    }
