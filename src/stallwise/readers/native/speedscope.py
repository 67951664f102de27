"""Speedscope profiles (py-spy, pprof, Chrome): in which frames a program's threads spent their time. Host side only."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from stallwise.errors import UnreadableInput
from stallwise.evidence.artifact import Artifact
from stallwise.evidence.evidence import Item
from stallwise.evidence.fact import Note, Source
from stallwise.readers._cells import number_of
from stallwise.readers._stack_lines import lines_table

FORMAT = "Speedscope profile"
EXCLUSIVE = True
SHOWN = 3  # frames that are named
HEAVY = 0.1  # of the sampled time


def recognises(name: str, head: bytes) -> bool:
    """Its schema."""
    return b"speedscope" in head[:4096] and b"file-format-schema" in head[:4096]


def read(artifact: Artifact) -> Iterator[Item]:
    """The frames that most samples end in. What the device did at the time is not in such a file."""
    try:
        data = msgspec.json.decode(artifact.text().encode())
        frames = [_line(f) for f in data["shared"]["frames"]]
        sampled = [sample for profile in data["profiles"] for sample in _samples(profile)]
        stacks = [([frames[i] for i in reversed(stack)], weight) for stack, weight in sampled]
    except (msgspec.DecodeError, RecursionError, KeyError, IndexError, TypeError, ValueError, AttributeError) as error:
        raise UnreadableInput(f"{artifact.name} is a damaged profile: {error}", hint="record it again") from error
    if not stacks:
        raise UnreadableInput(f"{artifact.name} holds no sample", hint="record it again, for longer")
    source, whole = Source(artifact.name), sum(weight for _, weight in stacks)
    tables = list(lines_table(stacks, source))
    lines = [line for t in tables for line in zip(t.columns["name"][:SHOWN], t.columns["share"][:SHOWN], strict=True)]
    heavy = [f"{name} {share:.0%}" for name, share in lines if share > HEAVY]
    told = f"; most of it in {', '.join(heavy)}" if heavy else ""
    yield Note(f"stacks of the host only, {whole:.4g} {data['profiles'][0].get('unit', '')} sampled{told}", source)
    yield from tables


def _line(frame: dict[str, Any]) -> str:
    """File, line and function, as far as the profiler knew them."""
    file, line, name = str(frame.get("file") or ""), frame.get("line"), str(frame["name"])
    place = f"{file}:{line}" if file and line else file
    return f"{place} {name}" if place else name


def _samples(profile: dict[str, Any]) -> Iterator[tuple[list[int], float]]:
    for stack, weight in zip(profile.get("samples", ()), profile.get("weights", ()), strict=False):
        if stack and (known := number_of(weight)) is not None:
            yield stack, known
