"""The page of a cause or a concept, or the answer to a question in words."""

from __future__ import annotations

from typing import Any

from stallwise.render.blocks import Code, Document, Verdict
from stallwise.render.blocks import document as filled


def document(name: str, page: dict[str, Any], *, deep: bool = False) -> Document:
    """Its first line, then paragraph by paragraph as it is written."""
    title, *paragraphs = str(page["text"]).split("\n\n")
    return filled(Verdict(title), *(Code(text) for text in paragraphs), verb="explain", subject=name)
