"""Shapes: trees, tables, pairs and sentences, whatever program wrote them. They know no quantity and no cause.

A shape module has two names: `recognises(name, text) -> bool` and `read(text) -> Iterator[Shape]`. The first that
recognises a text reads all of it; `text` comes last and cuts a document into tables, pairs and sentences.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import Protocol, cast

from stallwise.evidence.reading import Rows, Shape

LAST = "document"  # takes whatever no other shape knows


class ShapeReader(Protocol):
    """The form of a shape module."""

    def recognises(self, name: str, text: str) -> bool: ...
    def read(self, text: str) -> Iterator[Shape]: ...


@cache
def all_shapes() -> tuple[ShapeReader, ...]:
    """Every shape, the document last; modules that start with an underscore hold shared parts."""
    names = sorted((m.name for m in iter_modules(__path__)), key=lambda n: (n == LAST, n))
    found = [cast(ShapeReader, import_module(f"{__name__}.{n}")) for n in names if not n.startswith("_")]
    return tuple(m for m in found if hasattr(m, "recognises"))


def shapes_in(name: str, text: str, *, prose: bool = True) -> Iterator[Shape]:
    """What the text holds; without `prose` the numbers of sentences are left alone."""
    for shape in all_shapes():
        if shape.recognises(name, text):
            for found in shape.read(text):
                if prose or isinstance(found, Rows) or not found.in_prose:
                    yield found
            return
