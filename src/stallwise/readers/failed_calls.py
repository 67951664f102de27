"""Python tracebacks in rank logs that end inside a collective: which call each rank was in when it gave up."""

from __future__ import annotations

import re
from collections.abc import Iterator

from stallwise.evidence.artifact import Artifact
from stallwise.evidence.evidence import Item
from stallwise.readers._collective_waits import Wait, waits_table
from stallwise.readers.python_stacks import C10D, COLLECTIVE
from stallwise.readers.shapes.lines import lines_of

FORMAT = "tracebacks of collectives"
FRAME = re.compile(r'File "([^"]+)", line (\d{1,9}), in (\S+)')
ENDED = re.compile(r"(?:^|[\s:])(?:\w+\.)*\w*(?:Error|Exception)\b")


def recognises(name: str, head: bytes) -> bool:
    """A traceback that passes through torch.distributed."""
    return re.search(rb'File "[^"]*distributed_c10d\.py", line \d+, in ', head) is not None


def read(artifact: Artifact) -> Iterator[Item]:
    """A wait for each rank whose last traceback ends in a collective."""
    frames: dict[int, list[tuple[str, str, int]]] = {}
    waits: dict[int, Wait] = {}
    for line in lines_of(artifact):
        rank = -1 if line.rank is None else line.rank
        if frame := FRAME.search(line.text):
            frames.setdefault(rank, []).append((frame[1], frame[3], int(frame[2])))
        elif "Traceback (most recent call last)" in line.text:
            frames[rank] = []
        elif frames.get(rank) and ENDED.search(line.text):
            wait = _wait(rank, frames.pop(rank), line.number)
            if wait is not None:
                waits[rank] = wait
                wait.time_s = line.time_s
    if waits:
        yield waits_table(list(waits.values()), artifact.name)


def _wait(rank: int, frames: list[tuple[str, str, int]], line: int) -> Wait | None:
    """Outermost frame first: the caller is the last frame before the library's."""
    for place in range(len(frames) - 1, -1, -1):
        file, function, _ = frames[place]
        if C10D.search(file) and COLLECTIVE.match(function):
            mine = [f for f in frames[:place] if not C10D.search(f[0])]
            caller = f"{mine[-1][0]}:{mine[-1][2]} {mine[-1][1]}" if mine else ""
            return Wait(rank=rank, op=function.lstrip("_"), state="failed in", frame=caller, via="traceback", line=line)
    return None
