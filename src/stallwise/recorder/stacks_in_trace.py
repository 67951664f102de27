"""Puts the sampled stacks of a window into its trace, as the Python frames that a trace may hold: idle time gets a line's name.

Done by the launcher when the job has ended, so it costs the job nothing. The trace is not parsed, only copied: ours go in where
its list of events begins.
"""

from __future__ import annotations

import gzip
import json
import os
import re
import shutil
from typing import Any, Dict, Iterator, List, Tuple

from stallwise.recorder import schema

WITH_STACKS = (schema.FULL_WINDOW, schema.TIME_WINDOW)
HEAD_BYTES = 1 << 16  # before its events a trace says a few lines about the devices
BASE = re.compile(rb'"baseTimeNanoseconds"\s*:\s*(\d+)')
EVENTS = re.compile(rb'"traceEvents"\s*:\s*\[')
LONGEST_US = 20e3  # a sample stands for no more than two usual distances: the sampler may have been held up
KINDS = ('{"k":"run"', '{"k":"window"', '{"k":"line"', '{"k":"frames"', '{"k":"samples"')

Sample = Tuple[float, List[str]]  # microseconds on the trace's clock; lines, outermost first


def put_stacks_in(folder: str) -> None:
    """Every record's traces, one after the other. A trace that is not as expected stays as it is."""
    for record in schema.files_in(folder):
        try:
            _put(record)
        except (OSError, EOFError, ValueError, KeyError, TypeError):
            continue


def _put(record: str) -> None:
    pid, windows, frames, samples = _read(record)
    for window in windows:
        trace = os.path.join(schema.folder_name(record), window["file"])
        if window["window"] not in WITH_STACKS or not os.path.exists(trace):
            continue
        inside = [(t, frames[i]) for t, i in samples if window["from"] <= t <= window["to"] and i in frames]
        if inside:
            _rewrite(trace, inside, pid, int(window.get("tid", pid)))


def _read(record: str) -> "Tuple[int, List[Any], Dict[int, List[str]], List[Tuple[float, int]]]":
    pid, frames, samples = 0, {}, []
    windows: Dict[str, Any] = {}  # by file: one that was taken twice holds the second
    program: Dict[int, str] = {}
    with open(record, encoding="utf-8", errors="replace") as lines:
        for text in lines:
            if not text.startswith(KINDS):
                continue
            try:
                line = json.loads(text)
            except ValueError:
                continue
            kind = line["k"]
            if kind == "run":
                pid = int(line["pid"])
            elif kind == "window" and "from" in line:
                windows[line["file"]] = line
            elif kind == "line":
                program[int(line["id"])] = str(line["at"])
            elif kind == "frames":
                frames[int(line["id"])] = _own([program[int(at)] for at in line["lines"]])
            elif kind == "samples":
                samples += [(line["t"] + ms / 1e3, int(i)) for ms, i in zip(line["ms"], line["id"], strict=False)]
    return pid, list(windows.values()), frames, samples


def _own(stack: List[str]) -> List[str]:
    """Outermost first, down to the innermost line of the job's own: what a library does below it is its call."""
    lines = list(reversed(stack))
    own = [i for i, line in enumerate(lines) if not line.startswith(schema.LIBRARY)]
    return lines[: own[-1] + 1] if own else lines


def _rewrite(trace: str, samples: List[Tuple[float, List[str]]], pid: int, tid: int) -> None:
    with gzip.open(trace, "rb") as old:
        head = old.read(HEAD_BYTES)
        base, events = BASE.search(head), EVENTS.search(head)
        if base is None or events is None:
            return
        zero_s = int(base[1]) / 1e9
        moments = [((t - zero_s) * 1e6, stack) for t, stack in samples]
        ours = ",\n".join(json.dumps(event) for event in _events(moments, pid, tid))
        empty = head[events.end() :].lstrip()[:1] == b"]"
        with gzip.open(trace + ".part", "wb", compresslevel=5) as new:
            new.write(head[: events.end()] + b"\n" + ours.encode() + (b"" if empty else b","))
            new.write(head[events.end() :])
            shutil.copyfileobj(old, new)
    os.replace(trace + ".part", trace)


def _events(moments: List[Sample], pid: int, tid: int) -> Iterator[Dict[str, Any]]:
    """A frame lasts as long as it stays at its depth under the same callers."""
    open_frames: List[Tuple[str, float]] = []
    last_us = 0.0
    for at, (t_us, stack) in enumerate(moments):
        end_us = moments[at + 1][0] if at + 1 < len(moments) else t_us
        if at and t_us > last_us:  # a hole in the samples: nothing is known of it
            yield from _closed(open_frames, 0, last_us, pid, tid)
        same = 0
        while same < min(len(stack), len(open_frames)) and open_frames[same][0] == stack[same]:
            same += 1
        yield from _closed(open_frames, same, t_us, pid, tid)
        open_frames += [(line, t_us) for line in stack[same:]]
        last_us = min(end_us, t_us + LONGEST_US)
    yield from _closed(open_frames, 0, last_us, pid, tid)


def _closed(
    open_frames: List[Tuple[str, float]], keep: int, t_us: float, pid: int, tid: int
) -> Iterator[Dict[str, Any]]:
    while len(open_frames) > keep:
        line, from_us = open_frames.pop()
        yield {
            "ph": "X", "cat": "python_function", "name": _as_frame(line), "pid": pid, "tid": tid,
            "ts": round(from_us, 3), "dur": round(max(t_us - from_us, 0.0), 3), "args": {},
        }  # fmt: skip


def _as_frame(line: str) -> str:
    """ "train.py:41 main" as PyTorch's own frames read: "train.py(41): main"."""
    place, _, function = line.partition(" ")
    file, _, number = place.rpartition(":")
    return "%s(%s): %s" % (file, number, function)
