"""Stacks of live ranks: py-spy dump, faulthandler, and tracebacks by signal. Which collective, called from where."""
# ruff: noqa: E501  (patterns stay on one line)

from __future__ import annotations

import re
from collections.abc import Iterator

from stallwise.evidence.artifact import Artifact
from stallwise.evidence.catalog import run
from stallwise.evidence.evidence import Item
from stallwise.evidence.fact import Fact, Source
from stallwise.readers._collective_waits import Wait, waits_table
from stallwise.readers.shapes.lines import rank_of_file

FORMAT = "Python stacks"
CAPTURE = "py-spy dump --pid PID > stacks.txt"

THREAD = re.compile(
    r'^(?:Thread (?:0x)?[0-9a-f]+ \((?:active|idle|most recent call first)[^)]*\)|Thread \d+|Current thread 0x[0-9a-f]+|Thread 0x)[^"]*(?:"([^"]*)")?',
    re.I,
)
PROCESS = re.compile(r"^Process (\d+): (.+)")
NAME_RANK = re.compile(r"(?:rank|TP|DP|PP|worker)[_ =:]?(\d+)|--local[_-]rank[= ](\d+)", re.IGNORECASE)
PYSPY = re.compile(r"^\s+([\w<>.]+) \((\S+):(\d{1,9})\)")
FAULT = re.compile(r'^\s+File "([^"]+)", line (\d{1,9}) in (\S+)')
COLLECTIVE = re.compile(
    r"^_?(all_?reduce\w*|all_?gather\w*|reduce_?scatter\w*|broadcast\w*|reduce|all_?to_?all\w*|barrier|monitored_barrier|"
    r"send|recv|isend|irecv|batch_isend_irecv|gather\w*|scatter\w*|synchronize|wait)$"
)
C10D = re.compile(r"distributed_c10d|torch/distributed|c10d_logger|horovod|mpi4py|deepspeed/comm")
LOADER = re.compile(
    r"torch/utils/data/|tensorflow/python/data/|/webdataset/|/datasets/iterable|/nvidia/dali/|/ffcv/|/grain/"
)
HOLDS_WAIT = re.compile(r"distributed|horovod|nccl|parallel_state|comm", re.IGNORECASE)


def recognises(name: str, head: bytes) -> bool:
    """Thread headings with frames below."""
    text = head[:262144].decode("utf-8", errors="replace")
    threads = any(THREAD.match(line) for line in text.splitlines())
    return threads and (re.search(PYSPY.pattern, text, re.M) or re.search(FAULT.pattern, text, re.M)) is not None


def read(artifact: Artifact) -> Iterator[Item]:
    """A wait for every process whose main thread stands in a collective, and for those that stand elsewhere."""
    rank = rank_of_file(artifact.name)
    waits: list[Wait] = []
    loading: list[bool] = []  # of the main threads seen
    frames: list[tuple[str, str, int]] = []
    current, main, line_of = rank, False, 0
    for number, line in enumerate([*artifact.lines(), "Thread 0 (active)"], 1):
        process = PROCESS.match(line)
        thread = THREAD.match(line)
        if process or thread:
            if frames and main:
                waits.append(_wait(-1 if current is None else current, frames, line_of))
                loading.append(any(LOADER.search(file) for _, file, _ in frames))
            frames = []
        if process:
            named = NAME_RANK.search(process[2])
            current = rank if rank is not None else int(named[1] or named[2]) if named else None
        elif thread:
            main, line_of = (thread[1] or "MainThread") == "MainThread", number
        elif frame := PYSPY.match(line):
            frames.append((frame[1], frame[2], int(frame[3])))
        elif frame := FAULT.match(line):
            frames.append((frame[3], frame[1], int(frame[2])))
    if waits:
        yield waits_table(waits, artifact.name)
    # One of several ranks may stand in its loader while the others wait for it: that is told by the waits.
    if loading and not any(w.op or w.rank >= 0 for w in waits):
        source = Source(artifact.name, f"{len(loading)} stacks")
        yield Fact(run.STACKS_IN_LOADER, sum(loading) / len(loading), source, samples=len(loading))


def _wait(rank: int, frames: list[tuple[str, str, int]], line: int) -> Wait:
    """Innermost frame first: the library call, then the first frame that is not the library's."""
    op, caller = "", ""
    for function, file, number in frames:
        if not op:
            if COLLECTIVE.match(function) and (C10D.search(file) or HOLDS_WAIT.search(file)):
                op = function.lstrip("_")
        elif not C10D.search(file):
            caller = f"{file}:{number} {function}"
            break
    if not op and frames:
        caller = f"{frames[0][1]}:{frames[0][2]} {frames[0][0]}"
    return Wait(rank=rank, op=op, state="in call" if op else "elsewhere", frame=caller, via="stack", line=line)
