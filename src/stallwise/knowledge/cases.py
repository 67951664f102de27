"""The cases that knowledge is counted from: whose they are, what was told, and what it turned out to be.

`cases/*.jsonl` are written by `make knowledge`, never by hand. A case holds the words of its files, each once, as far as
another project uses them too: a word that one project alone uses has no second witness and cannot tell anything.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

import msgspec

# Composed from the facts of a thread, a case shows what its author found worth telling; a capture shows what is there.
# A question of the matrix comes in three wordings or more, which weigh together what a composed case does; they count for base
# rates and words, not for clues, since their numbers are made up.
# What the drill plants is a world of our own: it shows which clues a cause leaves, and little of how often.
WEIGHTS = {"capture": 1.0, "lines": 1.0, "composed": 0.7, "wording": 0.7, "question": 0.2, "drill": 0.3}
_LEFT_OUT: ContextVar[frozenset[str]] = ContextVar("left_out", default=frozenset())


@dataclass(frozen=True, slots=True)
class Case:
    """One incident with its truth."""

    id: str
    project: str
    kind: str  # capture, lines (of a real log), composed, wording, question
    causes: tuple[str, ...]  # all that its resolution allows; empty where nothing could be told
    symptoms: tuple[str, ...]
    words: frozenset[str]

    @property
    def weight(self) -> float:
        """How much it counts."""
        return WEIGHTS[self.kind]

    @property
    def share(self) -> float:
        """How much of it counts for each cause that it allows."""
        return self.weight / max(len(self.causes), 1)


@cache
def _all_cases() -> tuple[Case, ...]:
    found: list[Case] = []
    folder = files("stallwise.knowledge") / "cases"
    for path in sorted((p for p in folder.iterdir() if p.name.endswith(".jsonl")), key=lambda p: p.name):
        for row in msgspec.json.Decoder().decode_lines(path.read_bytes()):
            found.append(
                Case(row["id"], row["project"], row["kind"], tuple(row["causes"]), tuple(row["symptoms"]),
                     frozenset(row["words"].split(";")) - {""})
            )  # fmt: skip
    return tuple(found)


def left_out() -> frozenset[str]:
    """Projects whose cases do not count at the moment."""
    return _LEFT_OUT.get()


def cases() -> tuple[Case, ...]:
    """Every case that counts."""
    return _counting(left_out())


@cache
def _counting(without: frozenset[str]) -> tuple[Case, ...]:
    return tuple(c for c in _all_cases() if c.project not in without)


@contextmanager
def leaving_out(*projects: str) -> Iterator[None]:
    """Inside, these projects' cases are unknown: how every score of ours is taken."""
    token = _LEFT_OUT.set(frozenset(projects))
    try:
        yield
    finally:
        _LEFT_OUT.reset(token)
