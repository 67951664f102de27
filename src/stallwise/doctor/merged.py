"""All ranks of a job in one trace on one clock: what ui.perfetto.dev opens as one timeline.

Events of profiler traces are copied with the rank in front of their process and their clock's offset taken off; operation
tables become a process a replica and a thread a stage. One step and the ideal one stand beside them as processes of their own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any, cast
from zlib import crc32

import msgspec
import numpy as np

from stallwise.doctor.find import find
from stallwise.doctor.findings.diagnosis import Diagnosis
from stallwise.errors import BadRequest
from stallwise.evidence.artifact import Artifact
from stallwise.evidence.blocks import Blocks
from stallwise.evidence.catalog.distributed import CLOCK_OFFSET
from stallwise.evidence.evidence import Evidence
from stallwise.evidence.fact import Table
from stallwise.evidence.operations import COMMUNICATION, KIND, Work
from stallwise.readers import readers_for
from stallwise.readers.native import torch_trace
from stallwise.readers.records.trace_split import Split

RANK_STRIDE = 1_000  # processes of one rank; viewers hold numbers of processes in 32 bits
IDEAL_PROCESS = 2_000_000_077
ID_STRIDE = 1 << 40  # arrows of one rank; JSON holds whole numbers up to 53 bits
NANOSECONDS = 1e9
ROUNDED_NS = 2
LANES = 16  # of a stage's computing, and of its communication
NANOSECONDS_A_MICROSECOND = 1e3
Event = dict[str, Any]
_BESIDE = re.compile(r"^(gloo|mpi|ucc):", re.IGNORECASE)  # collectives that run on threads of their own


def merged_events(diagnosis: Diagnosis, paths: Sequence[str]) -> Iterator[Event]:
    """Every event of every rank, one after the other; nothing is held. Refuses at once where there is none."""
    evidence = diagnosis.evidence
    tables = [t for t in evidence.table(KIND) if not t.meta.get("laid_out") and not t.meta.get("traced")]
    if tables:
        of_tables = (_of_table(table, evidence) for table in tables)
        return chain.from_iterable((*of_tables, *map(_ideal, evidence.table("job.steps")[:1])))
    traces = [a for a in find(paths)[0] if any(r is torch_trace for r in readers_for(a))]
    if not traces:
        raise BadRequest(
            "there is no trace to merge", hint="give profiler traces of several ranks, or a timeline of operations"
        )
    origin = _Origin()
    return chain.from_iterable(_of_trace(artifact, at, evidence, origin) for at, artifact in enumerate(traces))


class _Origin:
    """Where the common clock begins: at the first trace. A number of microseconds since the epoch cannot hold fractions of them."""

    def __init__(self) -> None:
        self.base_ns: int | None = None

    def after_us(self, base_ns: int) -> float:
        """What a trace's own times are later."""
        if self.base_ns is None:
            self.base_ns = base_ns
        return (base_ns - self.base_ns) / NANOSECONDS_A_MICROSECOND


class _Plain(Split):
    """Blocks of events as they are written."""

    def _events(self, rest: bytes, block: bytes, stop: int, start: int) -> tuple[list[Any], bytes]:
        if stop > 0:
            try:
                return msgspec.json.decode(b"".join((b"[", rest, memoryview(block)[:stop], b"]"))), block[start:]
            except (msgspec.MsgspecError, UnicodeError, ValueError, RecursionError):
                pass
        return self._leniently(rest + block)

    def _event(self, text: str, item: Any) -> Any:
        return item if isinstance(item, dict) else None


def _of_trace(artifact: Artifact, number: int, evidence: Evidence, origin: _Origin) -> Iterator[Event]:
    """One rank's trace: its processes keep their names, behind the rank."""
    split = _Plain(Blocks(artifact))
    rank, later_us, processes = -1, 0.0, dict[Any, int]()
    asked = 0
    for block in split:
        if rank < 0:
            known = torch_trace.scope_of(artifact.name, split.properties).rank
            rank = number if known is None else known
            base_ns = split.properties.get("baseTimeNanoseconds")
            own_ns = int(base_ns) if isinstance(base_ns, (int, float)) else 0
            later_us = origin.after_us(own_ns + round(evidence.value(CLOCK_OFFSET, 0.0, rank=rank) * NANOSECONDS))
        for event in cast(list[Event], block):
            pid = event.get("pid")
            if pid is not None and pid not in processes:
                processes[pid] = rank * RANK_STRIDE + min(len(processes), RANK_STRIDE - 1)
                yield _name("process_name", processes[pid], 0, f"rank {rank}: process {pid}")
                yield _sorted(processes[pid])
            moved = _moved(event, rank, later_us, processes.get(pid))
            if moved.get("cat") == "user_annotation" and _BESIDE.match(str(moved.get("name"))) and "dur" in moved:
                asked += 1
                yield from _beside(moved, rank * ID_STRIDE + ID_STRIDE - asked)
            else:
                yield moved


def _beside(event: Event, number: int) -> Iterator[Event]:
    """A range that its thread only began: it ends beside what the thread does, which a slice on that thread cannot."""
    end = event["ts"] + event.pop("dur")
    yield {**event, "ph": "b", "id": number}
    yield {"ph": "e", "name": event["name"], "cat": event["cat"], "pid": event["pid"], "tid": event.get("tid"), "id": number,
           "ts": round(end, 3)}  # fmt: skip


def _moved(event: Event, rank: int, later_us: float, process: int | None) -> Event:
    """The same event on the common clock and under its rank."""
    if isinstance(event.get("ts"), (int, float)):
        event["ts"] = round(event["ts"] + later_us, 3)
    if process is not None:
        event["pid"] = process
    if event.get("name") == "process_name" and isinstance(event.get("args"), dict):
        event["args"] = {**event["args"], "name": f"rank {rank}: {event['args'].get('name', '')}"}
    if event.get("name") == "process_sort_index" and process is not None:
        event["args"] = {"sort_index": process}
    known = event.get("id")
    if isinstance(known, (int, str)):  # arrows of two ranks must not meet; viewers take whole numbers alone
        own = known if isinstance(known, int) else crc32(known.encode())
        event["id"] = rank * ID_STRIDE + own % ID_STRIDE
    return event


def _of_table(table: Table, evidence: Evidence) -> Iterator[Event]:
    """A process a replica, threads for the computing and the communication of each stage."""
    c, labels, works = table.columns, table.meta["labels"], table.meta["works"]
    known = [name for name in ("step", "microbatch", "chunk") if name in c]
    # A file of one rank says its rank alone; then that is the process.
    process = c["replica"] if (c["replica"] >= 0).any() else c.get("rank", c["replica"])
    lanes = _Lanes()
    for at in np.lexsort((-c["duration_s"], c["start_s"])).tolist():
        label, stage, replica = int(c["label"][at]), max(int(c["stage"][at]), 0), max(int(process[at]), 0)
        shift = _clock_of(evidence, replica, stage)
        begin_us, took_us = _whole_ns(float(c["start_s"][at]) + shift, float(c["duration_s"][at]))
        moves = Work(works[label]) in COMMUNICATION
        lane, new = lanes.lane((replica, stage, moves), begin_us, begin_us + took_us)
        thread = (stage * LANES + lane) * 2 + moves
        if new:
            yield _name("process_name", replica, 0, f"data-parallel rank {replica}")
            yield _sorted(replica)
            word = "communication" if moves else "compute"
            yield _name("thread_name", replica, thread, f"stage {stage}, {word}{f' {lane + 1}' if lane else ''}")
        yield {
            "ph": "X", "name": labels[label], "cat": Work(works[label]).name.lower(), "pid": replica, "tid": thread,
            "ts": begin_us, "dur": took_us,
            "args": {name: int(c[name][at]) for name in known if c[name][at] >= 0},
        }  # fmt: skip


class _Lanes:
    """Rows of a track in which no two operations cross: sends and receives run side by side."""

    def __init__(self) -> None:
        self._ends: dict[Any, list[float]] = {}

    def lane(self, track: Any, begin: float, end: float) -> tuple[int, bool]:
        """The first row that is free, or in whose last operation this one lies, and whether it is new; begins come in order."""
        ends = self._ends.setdefault(track, [])
        for at, last in enumerate(ends):
            if begin >= last or end <= last:
                ends[at] = max(last, end)
                return at, False
        if len(ends) == LANES:
            return LANES - 1, False
        ends.append(end)
        return len(ends) - 1, True


def _whole_ns(begin_s: float, took_s: float) -> tuple[float, float]:
    """Microseconds; viewers leave out what reaches a nanosecond into the next, and recorders round begin and length each by itself."""
    begin, end = round(begin_s * NANOSECONDS), round((begin_s + took_s) * NANOSECONDS)
    return begin / NANOSECONDS_A_MICROSECOND, max(end - begin - ROUNDED_NS, 0) / NANOSECONDS_A_MICROSECOND


def _clock_of(evidence: Evidence, replica: int, stage: int) -> float:
    if not evidence.all(CLOCK_OFFSET):
        return 0.0
    found = evidence.value(CLOCK_OFFSET, 0.0, stage=stage, group=f"data-parallel rank {replica}")
    return found or evidence.value(CLOCK_OFFSET, 0.0, rank=replica)


def _ideal(table: Table) -> Iterator[Event]:
    c = table.columns
    for which, word in ((0, "one step as it ran"), (1, "the same step, ideal")):
        yield _name("process_name", IDEAL_PROCESS + which, 0, word)
        yield _sorted(IDEAL_PROCESS + which)
        for at in (c["ideal"] == which).nonzero()[0].tolist():
            name = Work(int(c["work"][at])).name.lower().replace("_", " ")
            begin_us, took_us = _whole_ns(float(c["begin_s"][at]), float(c["length_s"][at]))
            yield {
                "ph": "X", "name": name, "cat": "stallwise", "pid": IDEAL_PROCESS + which, "tid": int(c["stage"][at]),
                "ts": begin_us, "dur": took_us,
                "args": {"microbatch": int(c["microbatch"][at])},
            }  # fmt: skip


def _name(what: str, process: int, thread: int, name: str) -> Event:
    return {"ph": "M", "name": what, "pid": process, "tid": thread, "ts": 0, "args": {"name": name}}


def _sorted(process: int) -> Event:
    """Ranks below each other in their order."""
    return {"ph": "M", "name": "process_sort_index", "pid": process, "tid": 0, "ts": 0, "args": {"sort_index": process}}
