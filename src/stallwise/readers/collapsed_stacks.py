"""Folded stacks, one a line with its samples: py-spy record -f raw, perf script folded, every flame graph's input."""

from __future__ import annotations

from collections.abc import Iterator

from stallwise.evidence.artifact import Artifact
from stallwise.evidence.evidence import Item
from stallwise.evidence.fact import Note, Source
from stallwise.readers._patterns import patterns
from stallwise.readers._stack_lines import lines_table, stacks_profile

FORMAT = "folded stacks"
LABELLED = True  # names of functions are no evidence of what is wrong
CAPTURE = "py-spy record -f raw -d 20 -o stacks.txt --pid PID"
MOST = 0.8  # of the first lines must be stacks
FEWEST = 3  # lines
LOOKED_AT = 50  # lines
_P = patterns("stacks")


def recognises(name: str, head: bytes) -> bool:
    """Frames joined by semicolons, and a count behind them, on nearly every line."""
    lines = [line for line in head[:65536].decode("utf-8", "replace").splitlines()[:LOOKED_AT] if line.strip()]
    whole = lines[:-1] if len(head) >= 65536 else lines
    return len(whole) >= FEWEST and sum(_P["folded"].match(line) is not None for line in whole) >= MOST * len(whole)


def read(artifact: Artifact) -> Iterator[Item]:
    """The frames that most samples end in."""
    source, lost = Source(artifact.name), 0
    stacks: list[tuple[list[str], float]] = []
    for line in artifact.lines():
        if found := _P["folded"].match(line):
            stacks.append((found["frames"].split(";")[::-1], float(found["count"])))
        else:
            lost += bool(line.strip())
    if lost:
        yield Note(f"{lost:,} lines are no stacks and were left out", source, lost=True)
    if stacks:
        yield from lines_table(stacks, source)
        yield stacks_profile(stacks, source, thread="the sampled threads", second=0.0, threads=1)
