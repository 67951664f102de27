"""All ranks of a job in one trace on one clock: what ui.perfetto.dev opens as one timeline.

Events of profiler traces are copied with the rank in front of their process and their clock's offset taken off; operation
tables become a process a replica and a thread a stage. One step and the ideal one stand beside them as processes of their own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, cast

import msgspec

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
MICROSECONDS = 1e6
Event = dict[str, Any]


def merged_events(diagnosis: Diagnosis, paths: Sequence[str]) -> Iterator[Event]:
    """Every event of every rank, one after the other; nothing is held."""
    evidence = diagnosis.evidence
    tables = [t for t in evidence.table(KIND) if not t.meta.get("laid_out") and not t.meta.get("traced")]
    if tables:
        for table in tables:
            yield from _of_table(table, evidence)
        for table in evidence.table("job.steps")[:1]:
            yield from _ideal(table)
        return
    traces = [a for a in find(paths)[0] if any(r is torch_trace for r in readers_for(a))]
    if not traces:
        raise BadRequest(
            "there is no trace to merge", hint="give profiler traces of several ranks, or a timeline of operations"
        )
    for number, artifact in enumerate(traces):
        yield from _of_trace(artifact, number, evidence)


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


def _of_trace(artifact: Artifact, number: int, evidence: Evidence) -> Iterator[Event]:
    """One rank's trace: its processes keep their names, behind the rank."""
    split = _Plain(Blocks(artifact))
    rank, base_s, processes = -1, 0.0, dict[Any, int]()
    for block in split:
        if rank < 0:
            known = torch_trace.scope_of(artifact.name, split.properties).rank
            rank = number if known is None else known
            base_ns = split.properties.get("baseTimeNanoseconds")
            base_s = float(base_ns) * 1e-9 if isinstance(base_ns, (int, float)) else 0.0
            base_s += evidence.value(CLOCK_OFFSET, 0.0, rank=rank)
        for event in cast(list[Event], block):
            pid = event.get("pid")
            if pid is not None and pid not in processes:
                processes[pid] = rank * RANK_STRIDE + min(len(processes), RANK_STRIDE - 1)
                yield _name("process_name", processes[pid], 0, f"rank {rank}: process {pid}")
            yield _moved(event, rank, base_s, processes.get(pid))


def _moved(event: Event, rank: int, base_s: float, process: int | None) -> Event:
    """The same event on the common clock and under its rank."""
    if isinstance(event.get("ts"), (int, float)):
        event["ts"] = round(event["ts"] + base_s * MICROSECONDS, 3)
    if process is not None:
        event["pid"] = process
    if event.get("name") == "process_name" and isinstance(event.get("args"), dict):
        event["args"] = {**event["args"], "name": f"rank {rank}: {event['args'].get('name', '')}"}
    if isinstance(event.get("id"), (int, str)):  # arrows of two ranks must not meet
        event["id"] = f"{rank}.{event['id']}"
    return event


def _of_table(table: Table, evidence: Evidence) -> Iterator[Event]:
    """A process a replica, two threads a stage: computing and communication."""
    c, labels, works = table.columns, table.meta["labels"], table.meta["works"]
    known = [name for name in ("step", "microbatch", "chunk") if name in c]
    # A file of one rank says its rank alone; then that is the process.
    process = c["replica"] if (c["replica"] >= 0).any() else c.get("rank", c["replica"])
    tracks: set[tuple[int, int]] = set()
    for at in range(len(table)):
        label, stage, replica = int(c["label"][at]), max(int(c["stage"][at]), 0), max(int(process[at]), 0)
        thread = 2 * stage + (Work(works[label]) in COMMUNICATION)
        if (replica, thread) not in tracks:
            tracks.add((replica, thread))
            yield _name("process_name", replica, 0, f"data-parallel rank {replica}")
            yield _name(
                "thread_name", replica, thread, f"stage {stage}, {'communication' if thread % 2 else 'compute'}"
            )
        shift = _clock_of(evidence, replica, stage)
        begin = (float(c["start_s"][at]) + shift) * MICROSECONDS
        yield {
            "ph": "X", "name": labels[label], "cat": Work(works[label]).name.lower(), "pid": replica, "tid": thread,
            "ts": round(begin, 3), "dur": round(float(c["duration_s"][at]) * MICROSECONDS, 3),
            "args": {name: int(c[name][at]) for name in known if c[name][at] >= 0},
        }  # fmt: skip


def _clock_of(evidence: Evidence, replica: int, stage: int) -> float:
    if not evidence.all(CLOCK_OFFSET):
        return 0.0
    found = evidence.value(CLOCK_OFFSET, 0.0, stage=stage, group=f"data-parallel rank {replica}")
    return found or evidence.value(CLOCK_OFFSET, 0.0, rank=replica)


def _ideal(table: Table) -> Iterator[Event]:
    c = table.columns
    for which, word in ((0, "one step as it ran"), (1, "the same step, ideal")):
        yield _name("process_name", IDEAL_PROCESS + which, 0, word)
        for at in (c["ideal"] == which).nonzero()[0].tolist():
            name = Work(int(c["work"][at])).name.lower().replace("_", " ")
            yield {
                "ph": "X", "name": name, "cat": "stallwise", "pid": IDEAL_PROCESS + which, "tid": int(c["stage"][at]),
                "ts": round(float(c["begin_s"][at]) * MICROSECONDS, 3), "dur": round(float(c["length_s"][at]) * MICROSECONDS, 3),
                "args": {"microbatch": int(c["microbatch"][at])},
            }  # fmt: skip


def _name(what: str, process: int, thread: int, name: str) -> Event:
    return {"ph": "M", "name": what, "pid": process, "tid": thread, "ts": 0, "args": {"name": name}}
