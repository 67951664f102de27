"""A saved page as the text that it shows: a line a block, a row of a table with tabs between its cells."""

from __future__ import annotations

import re
from html.parser import HTMLParser

from stallwise.evidence.artifact import Artifact

MOST_BYTES = 16 << 20
_STARTS = (b"<!doctype html", b"<html", b"<body", b"<table", b"<pre", b"<div")
_UNSEEN = ("head", "script", "style", "template", "svg")
_INLINE = (
    "a",
    "abbr",
    "b",
    "code",
    "em",
    "font",
    "i",
    "kbd",
    "mark",
    "samp",
    "small",
    "span",
    "strong",
    "sub",
    "sup",
    "tt",
    "u",
)
_CELLS = ("td", "th")
_BLANKS = re.compile(r"\s+")


def page_in(artifact: Artifact) -> list[str] | None:
    """The lines that a browser shows; None for what is no page."""
    if not artifact.head[:512].lstrip().lower().startswith(_STARTS):
        return None
    page = _Page()
    page.feed(artifact.text(MOST_BYTES))
    page.close()
    return [line.rstrip() for line in "".join(page.shown).strip("\n").split("\n")]


class _Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.shown: list[str] = []
        self.unseen = self.kept = 0  # elements around that hide their text, or show it as it is written
        self.cells = 0  # of the row so far

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.unseen += tag in _UNSEEN
        self.kept += tag == "pre"
        if tag in _CELLS:
            self.shown += ["\t"] if self.cells else []
            self.cells += 1
        else:
            self._end_line(tag)

    def handle_endtag(self, tag: str) -> None:
        self.unseen = max(0, self.unseen - (tag in _UNSEEN))
        self.kept = max(0, self.kept - (tag == "pre"))
        if tag not in _CELLS:
            self._end_line(tag)

    def handle_data(self, data: str) -> None:
        words = data if self.kept else _BLANKS.sub(" ", data)
        if not self.unseen and (self.kept or words.strip() or not self._begins()):
            self.shown.append(words)

    def _begins(self) -> bool:
        return not self.shown or self.shown[-1].endswith(("\n", "\t"))

    def _end_line(self, tag: str) -> None:
        if tag == "tr":
            self.cells = 0
        if tag not in _INLINE and not self.cells and self.shown and not self.shown[-1].endswith("\n"):
            self.shown.append("\n")
