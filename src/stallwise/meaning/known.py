"""Messages that are only known: which program prints them, how loudly, since which release. Nobody has judged their weight.

`known/*.tsv` hold a distinctive piece of each message. Only loud lines without a signature are looked up, so no automaton is
needed: every piece is found by its first letters.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib.resources import files

SHORTEST = 14  # letters of a piece: shorter ones say nothing


@dataclass(frozen=True, slots=True)
class Known:
    """A message of a program."""

    piece: str
    level: str
    component: str
    source: str


def known_message(text: str) -> Known | None:
    """The longest known piece that stands in this line."""
    lowered = text.lower()
    found = ""
    for at in range(len(lowered) - SHORTEST + 1):
        for piece in _by_start().get(lowered[at : at + SHORTEST], ()):
            if len(piece) > len(found) and lowered.startswith(piece, at):
                found = piece
    return _entry(found) if found else None


def _entry(piece: str) -> Known:
    book, level, place, releases = _rows()[piece]
    component, source = _head(book)
    return Known(piece, level, component, f"{source} {place} {releases}")


@cache
def books() -> tuple[str, ...]:
    """Names of the files."""
    folder = files("stallwise.meaning").joinpath("known")
    return tuple(sorted(p.name for p in folder.iterdir() if p.name.endswith(".tsv")))


@cache
def _text(book: str) -> str:
    return files("stallwise.meaning").joinpath("known", book).read_text(encoding="utf-8")


def _head(book: str) -> tuple[str, str]:
    component, source = _text(book).split("\n", 1)[0].removeprefix("# ").split("\t")[:2]
    return component, source


@cache
def _rows() -> dict[str, tuple[str, str, str, str]]:
    rows: dict[str, tuple[str, str, str, str]] = {}
    for book in books():
        for row in _text(book).splitlines()[1:]:
            piece, level, place, releases = row.split("\t")
            rows.setdefault(piece, (book, level, place, releases))
    return rows


@cache
def _by_start() -> dict[str, list[str]]:
    starts: dict[str, list[str]] = {}
    for piece in _rows():
        starts.setdefault(piece[:SHORTEST], []).append(piece)
    return starts
