"""Stacks of live ranks: py-spy dump, faulthandler, and tracebacks by signal. Which collective, called from where."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache

from stallwise.evidence.artifact import Artifact
from stallwise.evidence.catalog import run
from stallwise.evidence.evidence import Item
from stallwise.evidence.fact import Fact, Source
from stallwise.readers._collective_waits import Call, Wait, wait_in, waits_table
from stallwise.readers._patterns import patterns
from stallwise.readers.shapes.lines import rank_of_file

FORMAT = "Python stacks"
CAPTURE = "py-spy dump --pid PID > stacks.txt"
_P = patterns("stacks")


def recognises(name: str, head: bytes) -> bool:
    """Thread headings with frames below."""
    lines = head[:262144].decode("utf-8", errors="replace").splitlines()
    return any(map(_P["thread"].match, lines)) and any(_frame(line) is not None for line in lines)


@lru_cache(maxsize=1 << 12)
def _frame(line: str) -> Call | None:
    found = (_P["sampled"].match(line) or _P["frame"].search(line)) if line[:1].isspace() else None
    return (found["function"], found["file"], int(found["line"])) if found else None


@lru_cache(maxsize=1 << 8)
def _judged(frames: tuple[Call, ...]) -> tuple[Wait, bool]:
    """Where a stack waits, and whether it stands in a loader: many dumps show the same."""
    function, file, at = frames[0]
    wait = wait_in(frames, "in call", "stack", wrapped=True)
    elsewhere = Wait(-1, state="elsewhere", frame=f"{file}:{at} {function}", via="stack")
    return wait or elsewhere, any(_P["loader"].search(file) for _, file, _ in frames)


def read(artifact: Artifact) -> Iterator[Item]:
    """A wait for every process whose main thread stands in a collective, and for those that stand elsewhere."""
    rank = rank_of_file(artifact.name)
    waits: list[Wait] = []
    loading: list[bool] = []  # of the main threads seen
    frames: list[Call] = []
    current, main, line_of, since = rank, False, 0, -1
    for number, line in enumerate([*artifact.lines(), "Thread 0 (active)"], 1):
        if line[:1].isspace():
            if frame := _frame(line):
                frames.append(frame)
            continue
        process, thread = _P["process"].match(line), _P["thread"].match(line)
        if process or thread:
            if frames and main:
                wait, loads = _judged(tuple(frames))
                if since >= 0:  # of threads without names the last of a process is its main one
                    del waits[since:], loading[since:]
                waits.append(replace(wait, rank=-1 if current is None else current, line=line_of))
                loading.append(loads)
            frames = []
        if process:
            named = _P["rank_named"].search(process[2])
            current = rank if rank is not None else int(named[1] or named[2]) if named else None
            since = len(waits)
        elif thread:
            main, line_of = (thread[1] or "MainThread") == "MainThread", number
    if waits:
        yield waits_table(waits, artifact.name)
    # One of several ranks may stand in its loader while the others wait for it: that is told by the waits.
    if loading and not any(w.op or w.rank >= 0 for w in waits):
        source = Source(artifact.name, f"{len(loading)} stacks")
        yield Fact(run.STACKS_IN_LOADER, sum(loading) / len(loading), source, samples=len(loading))
