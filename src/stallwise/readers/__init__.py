"""Readers: one format per file, found by walking this package and `native` (formats of one program, with columns of their own).

A reader module has three names: FORMAT, `recognises(name, head) -> bool` and `read(artifact) -> Iterator[Item]`. It
recognises by content, converts units, streams, never judges, and raises only StallwiseError. Several readers may read
one log: each takes the lines it knows. A module that sets EXCLUSIVE = True owns its artifact alone;
CAPTURE is the command that makes such a file, where there is one.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import Protocol, cast

from stallwise.evidence.artifact import Artifact
from stallwise.evidence.evidence import Item
from stallwise.evidence.reading import Printed, Shape
from stallwise.readers import native

# Asked before the others are even imported: the largest inputs, and a thousand of them at once. Must be exclusive.
FIRST = ("native.torch_trace",)


class Reader(Protocol):
    """The shape of a reader module."""

    FORMAT: str

    def recognises(self, name: str, head: bytes) -> bool: ...
    def read(self, artifact: Artifact) -> Iterator[Item | Printed | Shape]: ...


@cache
def all_readers() -> tuple[Reader, ...]:
    """Every reader; modules that start with an underscore hold shared parts."""
    found = [*iter_modules(__path__, f"{__name__}."), *iter_modules(native.__path__, f"{native.__name__}.")]
    names = [m.name for m in found if not m.ispkg and not m.name.rpartition(".")[2].startswith("_")]
    return tuple(cast(Reader, import_module(name)) for name in sorted(names, key=lambda n: n.rpartition(".")[2]))


@cache
def _by_claim() -> tuple[tuple[Reader, ...], tuple[Reader, ...]]:
    """Those that own an artifact alone, and the others."""
    alone = tuple(r for r in all_readers() if getattr(r, "EXCLUSIVE", False))
    return alone, tuple(r for r in all_readers() if r not in alone)


def readers_for(artifact: Artifact) -> list[Reader]:
    """The readers that know this artifact; an exclusive one takes it alone, and is asked before the others."""
    head = artifact.head
    for name in FIRST:
        reader = cast(Reader, import_module(f"{__name__}.{name}"))
        if reader.recognises(artifact.name, head):
            return [reader]
    head = artifact.distinct_head
    # Readers of logs search the whole sample for many words: a trace must not pay for that.
    owners, others = _by_claim()
    for alone in owners:
        if alone.recognises(artifact.name, head):
            return [alone]
    return [r for r in others if r.recognises(artifact.name, head)]
