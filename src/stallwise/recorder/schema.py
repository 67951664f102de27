"""The lines of a record file: one JSON object a line, keys kept short since a run writes one line a step for days.

    {"k": "run",  "v": 2, "rank": 0, "world": 8, "pid": ..., "host": "...", "host_memory": bytes, "t": epoch_s, "env": {...}}
    {"k": "step", "n": 12, "t": epoch_s, "d": seconds, "s": {"forward": host_s}, "u": {"my span": host_s},
                  "o": {"prefetch": host_s}, "m": {...}, "b": "optimizer",
                  "window": "device" | "full" | "time" | "edge" | "after"}
    {"k": "window", "window": "full", "first": 10, "last": 13, "file": "trace_full.json.gz",
                  "from": epoch_s, "to": epoch_s, "start_s": ..., "stop_s": ...}
    {"k": "mark", "name": "...", "n": 12, "t": epoch_s, "note": "..."}
    {"k": "stack", "n": 12, "t": epoch_s, "text": "..."}        every thread, when no step ended for too long
    {"k": "line", "id": 3, "at": "train.py:41 main"}              of the program, each written once
    {"k": "frames", "id": 7, "lines": [3, ...]}                   innermost first; each stack is written once. In records from
                  outside and older ones the lines are spelled out: "stack": ["train.py:41 main", ...]
    {"k": "samples", "t": epoch_s, "ms": [after t, ...], "id": [of the stack, ...], "stage": [...]}  where the training thread was
    {"k": "counted", "id": [of the stack, ...], "count": [...]}   how often each stack was seen from outside, without times
    {"k": "memory", "s": [after the run line's t, ...], "bytes": [...]}   of the process and its children, seen from outside
    {"k": "grows", "n": 240, "name": "Stats.kept", "of": "list", "gained": 20, "steps": 20, "bytes": ..., "what": "ndarray"}
                  a container that gained elements while memory grew, and the bytes of a new one
    {"k": "end",  "n": 12, "t": epoch_s, "why": "exit" | "exception" | "signal 15"}

Times are seconds; epoch seconds are the clock of the traces too. `d` is the wall time of a step without whatever the recorder
itself did between steps (starting and stopping a profiler), which stands in the `window` line. A step without `window` ran
untraced; "device" is the window in which only the device was traced, "full" the one with operators and shapes, "time" one
that was opened by the clock since no steps were to be found where a profiler could follow them, "edge" a step beside one
(the profiler warms up, or its queue is empty), "after" a step that no profiler traced but that ran with CUPTI still attached.
`s` holds host seconds by stage: no two overlap, so they and the side work that no stage covers are the step. `u` holds the
user's spans by their own names, each with all that lies in it, and the garbage collector ("gc"), wherever it ran; a span that is
a stage with nothing else in it stands in `s` alone. `o` holds spans of other threads, `m` gauges, `b` what showed that the step had
ended. Device seconds follow in a line of their own, {"k": "gpu", "n": 11, "d": of the step, "g": by stage, "u": by span, "of": 1},
when the events of step 11 have passed; where steps are short only some are stamped, and "of" says for how many this one stands.
Before version 3 `s` held stages and spans alike, and a span around a hooked call was counted twice. Files of libraries begin
with "lib/" in stacks. A torn last line is normal.
"""

import glob
import os
from typing import List

VERSION = 3

# The stages of a training step; one that was captured into a CUDA graph is one stage, its replay.
# `side` is what no other stage covers: logging, checkpoints, evaluation, the rest.
BATCH_WAIT = "batch_wait"
H2D = "h2d"
FORWARD = "forward"
BACKWARD = "backward"
GRADIENT_SYNC = "gradient_sync"
OPTIMIZER = "optimizer"
REPLAY = "replay"
SIDE = "side"
STAGES = (BATCH_WAIT, H2D, FORWARD, BACKWARD, GRADIENT_SYNC, OPTIMIZER, REPLAY, SIDE)

# Parts of side work that have a name of their own.
CHECKPOINT = "checkpoint"
COLLECTION = "gc"
EVALUATION = "evaluation"

COMPILED = "compiled"  # while a compiled function runs: afterwards it shows what it was; never written

DEVICE_WINDOW = "device"
TIME_WINDOW = "time"
FULL_WINDOW = "full"
EDGE = "edge"
AFTER = "after"
TRACE_FILES = {
    DEVICE_WINDOW: "trace_device.json.gz",
    FULL_WINDOW: "trace_full.json.gz",
    TIME_WINDOW: "trace_time.json.gz",
}
LIBRARY = "lib/"  # begins the files of others in stacks


def file_name(rank: int, pid: int = 0) -> str:
    """One file a rank; nobody shares a file or a lock. A second process of the same rank says its number, too."""
    return "rank-%05d.jsonl" % rank if not pid else "rank-%05d.pid-%d.jsonl" % (rank, pid)


def files_in(folder: str) -> List[str]:
    """Every process's record file; what only looks like one (a device, a pipe) is left alone."""
    found = glob.glob(os.path.join(glob.escape(folder), "rank-*.jsonl"))
    return sorted(path for path in found if os.path.isfile(path))


def folder_name(file: str) -> str:
    """Where the traces of a record's process lie: beside its file, under the same name."""
    return file[: -len(".jsonl")]
