"""Tables of which there is a folder: one more file is one more table."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

FOLDER = Path(__file__).parent


def tables_in(folder: str, ending: str = ".toml") -> Iterator[tuple[str, str]]:
    """Names and texts of the tables of a folder of this package."""
    found = [p for p in (FOLDER / folder).iterdir() if p.name.endswith(ending)]
    for path in sorted(found, key=lambda p: p.name):
        yield path.name.removesuffix(ending), path.read_text(encoding="utf-8")
