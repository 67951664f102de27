"""Python tracebacks in rank logs that end inside a collective: which call each rank was in when it gave up."""

from __future__ import annotations

from collections.abc import Iterator

from stallwise.evidence.artifact import Artifact
from stallwise.evidence.evidence import Item
from stallwise.readers._collective_waits import Call, Wait, wait_in, waits_table
from stallwise.readers._patterns import patterns
from stallwise.readers.shapes.lines import Speakers

FORMAT = "tracebacks of collectives"
_P = patterns("stacks")


def recognises(name: str, head: bytes) -> bool:
    """A traceback that passes through torch.distributed."""
    return _P["in_collective"].search(head.decode("utf-8", "replace")) is not None


def read(artifact: Artifact) -> Iterator[Item]:
    """A wait for each rank whose last traceback ends in a collective."""
    frames: dict[int, list[Call]] = {}
    waits: dict[int, Wait] = {}
    text, speakers = artifact.skeletons, Speakers(artifact)
    relevant = text.where(lambda x: "Traceback" in x or _P["frame"].search(x) or _P["ended"].search(x))
    for line in map(speakers.line, text.lines_of(relevant)):
        rank = -1 if line.rank is None else line.rank
        if frame := _P["frame"].search(line.text):
            frames.setdefault(rank, []).insert(0, (frame["function"], frame["file"], int(frame["line"])))
        elif "Traceback (most recent call last)" in line.text:
            frames[rank] = []
        elif frames.get(rank) and _P["ended"].search(line.text):
            wait = wait_in(frames.pop(rank), "failed in", "traceback")
            if wait is not None:
                wait.rank, wait.line, wait.time_s = rank, line.number, line.time_s
                waits[rank] = wait
    if waits:
        yield waits_table(list(waits.values()), artifact.name)
