"""Readers: one format per file, found by walking this package and `native` (formats of one program, with columns of their own).

A reader module has three names: FORMAT, `recognises(name, head) -> bool` and `read(artifact) -> Iterator[Item]`. It
recognises by content, converts units, streams, never judges, and raises only StallwiseError. Several readers may read
one log: each takes the lines it knows. A module that sets EXCLUSIVE = True owns its artifact alone;
CAPTURE is the command that makes such a file, where there is one.
"""

from __future__ import annotations

import re
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
FIRST = ("native.operation_trace", "native.torch_trace")
LONGEST_SENTENCE = 2000  # bytes
# Words with one space between them and none of the signs that programs print: no table, no key with its value, no path into a module.
_SENTENCE = re.compile(rb"[A-Za-z0-9.'%/()+~\x80-\xff-]+[,;?!]*(?: [A-Za-z0-9.'%/()+~\x80-\xff-]+[,;?!]*)*")
# Those that may know such a sentence. Any other needs several lines or a sign of its own (tests/readers/test_sentences.py).
# And what must stand there before one of them is even loaded.
OF_SENTENCES = {
    "oom_message": re.compile(b""),
    "rank_progress": re.compile(b""),
    "rank_steps": re.compile(rb"\d"),  # it reads times
    "run_outcomes": re.compile(b"NCCL INFO"),  # else it needs several lines
    "token_lists": re.compile(b""),
    "train_log": re.compile(b""),
}


class Reader(Protocol):
    """The shape of a reader module."""

    FORMAT: str

    def recognises(self, name: str, head: bytes) -> bool: ...
    def read(self, artifact: Artifact) -> Iterator[Item | Printed | Shape]: ...


def all_readers() -> tuple[Reader, ...]:
    """Every reader."""
    return tuple(sorted((*_readers_in(__name__), *_readers_in(native.__name__)), key=_short_name))


@cache
def _readers_in(package: str) -> tuple[Reader, ...]:
    """Those of one package; modules that start with an underscore hold shared parts."""
    found = iter_modules(import_module(package).__path__, f"{package}.")
    names = [m.name for m in found if not m.ispkg and not m.name.rpartition(".")[2].startswith("_")]
    return tuple(cast(Reader, import_module(name)) for name in names)


def _short_name(reader: Reader) -> str:
    return str(reader.__name__).rpartition(".")[2]  # type: ignore[attr-defined]


@cache
def _by_claim(one_line: bool) -> tuple[tuple[Reader, ...], tuple[Reader, ...]]:
    """Those that own an artifact alone, and the others. No program's own format is one line of words: nobody loads those for it."""
    found = sorted(_readers_in(__name__), key=_short_name) if one_line else all_readers()
    alone = tuple(r for r in found if getattr(r, "EXCLUSIVE", False))
    return alone, tuple(r for r in found if r not in alone)


def _is_one_line(head: bytes) -> bool:
    """A sentence, and no document in one line."""
    text = head.strip()
    return (
        len(text) <= LONGEST_SENTENCE
        and b"\n" not in text
        and b"\x00" not in text
        and text[:1] not in (b"{", b"[", b"<")
    )


def is_sentence(head: bytes) -> bool:
    """One line of words, as people type them."""
    return _is_one_line(head) and _SENTENCE.fullmatch(head.strip()) is not None


def _of_sentence(head: bytes) -> tuple[Reader, ...]:
    """Readers whose sign stands in a sentence; the others are not loaded."""
    names = (name for name, sign in OF_SENTENCES.items() if sign.search(head))
    return tuple(cast(Reader, import_module(f"{__name__}.{name}")) for name in names)


def readers_for(artifact: Artifact) -> list[Reader]:
    """The readers that know this artifact; an exclusive one takes it alone, and is asked before the others."""
    head = artifact.head
    one_line = _is_one_line(head)
    for name in () if one_line else FIRST:
        reader = cast(Reader, import_module(f"{__name__}.{name}"))
        if reader.recognises(artifact.name, head):
            return [reader]
    head = artifact.distinct_head
    # Readers of logs search the whole sample for many words: a trace must not pay for that.
    owners, others = ((), _of_sentence(head)) if is_sentence(head) else _by_claim(one_line)
    for alone in owners:
        if alone.recognises(artifact.name, head):
            return [alone]
    return [r for r in others if r.recognises(artifact.name, head)]
