"""Speedscope profiles (py-spy, pprof, Chrome): in which frames a program's threads spent their time. Host side only."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from stallwise.errors import UnreadableInput
from stallwise.evidence.artifact import Artifact
from stallwise.evidence.evidence import Item
from stallwise.evidence.fact import Source
from stallwise.readers._cells import number_of
from stallwise.readers._stack_lines import lines_table, stacks_profile

FORMAT = "Speedscope profile"
EXCLUSIVE = True
MOST_THREADS = 4  # the longest; a pool has dozens that wait alike
SECONDS = {"nanoseconds": 1e-9, "microseconds": 1e-6, "milliseconds": 1e-3, "seconds": 1.0}


def recognises(name: str, head: bytes) -> bool:
    """Its schema."""
    return b"speedscope" in head[:4096] and b"file-format-schema" in head[:4096]


def read(artifact: Artifact) -> Iterator[Item]:
    """The frames that most samples end in, thread by thread. What the device did at the time is not in such a file."""
    try:
        data = msgspec.json.decode(artifact.text().encode())
        frames = [_line(f) for f in data["shared"]["frames"]]
        threads = [(str(p.get("name", "")), str(p.get("unit", "")), list(_samples(p))) for p in data["profiles"]]
        stacks = [
            (name, unit, [([frames[i] for i in reversed(stack)], weight) for stack, weight in sampled])
            for name, unit, sampled in threads
            if sampled
        ]
    except (msgspec.DecodeError, RecursionError, KeyError, IndexError, TypeError, ValueError, AttributeError) as error:
        raise UnreadableInput(f"{artifact.name} is a damaged profile: {error}", hint="record it again") from error
    if not stacks:
        raise UnreadableInput(f"{artifact.name} holds no sample", hint="record it again, for longer")
    source = Source(artifact.name)
    yield from lines_table([stack for _, _, sampled in stacks for stack in sampled], source)
    longest = sorted(stacks, key=lambda thread: -sum(weight for _, weight in thread[2]))
    for name, unit, sampled in sorted(longest[:MOST_THREADS], key=lambda thread: "main" not in thread[0].lower()):
        yield stacks_profile(sampled, source, thread=name, second=SECONDS.get(unit, 0.0), threads=len(stacks))


def _line(frame: dict[str, Any]) -> str:
    """File, line and function, as far as the profiler knew them."""
    file, line, name = str(frame.get("file") or ""), frame.get("line"), str(frame["name"])
    place = f"{file}:{line}" if file and line else file
    return f"{place} {name}" if place else name


def _samples(profile: dict[str, Any]) -> Iterator[tuple[list[int], float]]:
    for stack, weight in zip(profile.get("samples", ()), profile.get("weights", ()), strict=False):
        if stack and (known := number_of(weight)) is not None:
            yield stack, known
