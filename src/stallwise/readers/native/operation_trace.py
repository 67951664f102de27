"""Timelines of whole jobs in Chrome's JSON: processes and threads are ranks, events are passes, sends and collectives."""

from __future__ import annotations

import re
from collections.abc import Iterator
from operator import attrgetter
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from stallwise.errors import UnreadableInput
from stallwise.evidence import gc_pause
from stallwise.evidence.artifact import Artifact
from stallwise.evidence.blocks import Blocks
from stallwise.evidence.evidence import Item
from stallwise.evidence.fact import Note, Source, Table
from stallwise.evidence.operations import KIND, UNKNOWN, Work, numbered
from stallwise.readers._operation_names import host_in, places_in, rank_in_file, roles, work_of
from stallwise.readers.native.torch_trace import is_chrome_trace, is_of_xla
from stallwise.readers.records.trace_split import Split

FORMAT = "timeline of operations"
EXCLUSIVE = True

SAMPLE = 1 << 18  # bytes in which a pass of each direction occurs
_NAME = re.compile(rb'"name"\s*:\s*"([^"\\]{1,60})"')
_KEY = re.compile(rb'"(\w+)"\s*:\s*"?-?\d')
_OF_PROFILERS = (b'"cpu_op"', b'"kernel"', b'"cuda_runtime"', b'"schemaVersion"', b'"deviceProperties"')
MICROSECOND = 1e-6


def recognises(name: str, head: bytes) -> bool:
    """Passes of both directions with the step or the microbatch that they belong to; nothing that a profiler of one process writes."""
    if not is_chrome_trace(name, head) or any(word in head for word in _OF_PROFILERS) or is_of_xla(head):
        return False
    keys = {roles().get(k.decode()) for k in set(_KEY.findall(head[:SAMPLE]))}
    if not keys & {"step", "microbatch"}:
        return False
    names = {work_of(n.decode()) for n in set(_NAME.findall(head))}
    return Work.FORWARD in names and bool(names & {Work.BACKWARD, Work.WEIGHT_GRAD})


def read(artifact: Artifact) -> Iterator[Item]:
    """One table of operations, and what was lost."""
    columns = _Columns(sorted(k for x in set(_KEY.findall(artifact.head)) if (k := x.decode()) in roles()))
    blocks = Blocks(artifact)
    split = _Events(blocks, columns.event)
    with gc_pause.paused():
        for events in split:
            columns.add(events)
    source = Source(artifact.name)
    if not columns.count:
        raise UnreadableInput(f"{artifact.name}: no operation with a time was found in {blocks.read_bytes:,} bytes")
    yield columns.table(source)
    if columns.unnamed:
        text = "its threads have no names: those that run passes are taken for pipeline stages, in the order in which they begin"
        yield Note(text, source, lost=True)
    if blocks.damage:
        yield Note(
            f"{blocks.damage} after {blocks.read_bytes:,} unpacked bytes; what came before was used", source, lost=True
        )
    if split.cut_off:
        yield Note("the timeline ends in the middle of an event; what came before was used", source, lost=True)
    if split.lost:
        yield Note(f"{split.lost:,} events were not readable and are left out", source, lost=True)


class _Events(Split):
    """Blocks of events of one type."""

    def __init__(self, blocks: Blocks, event: type) -> None:
        super().__init__(blocks)
        self._list = msgspec.json.Decoder(list[event], strict=False)  # type: ignore[valid-type]
        self._one: msgspec.json.Decoder[Any] = msgspec.json.Decoder(event, strict=False)

    def _events(self, rest: bytes, block: bytes, stop: int, start: int) -> tuple[list[Any], bytes]:
        if stop > 0:
            try:
                return self._list.decode(b"".join((b"[", rest, memoryview(block)[:stop], b"]"))), block[start:]
            except (msgspec.MsgspecError, UnicodeError, ValueError, RecursionError):
                pass
        return self._leniently(rest + block)

    def _event(self, text: str, item: Any) -> Any:
        try:
            return self._one.decode(text)
        except (msgspec.MsgspecError, UnicodeError, ValueError, RecursionError):
            return None


class _Columns:
    """Columns in the making, block by block."""

    def __init__(self, keys: list[str]) -> None:
        self.keys = keys
        args = msgspec.defstruct(
            "Args",
            [*((k, int | float | None, UNKNOWN) for k in keys if k != "name"), ("name", str | None, None)],
            gc=False,
        )
        self.event = msgspec.defstruct(
            "Event",
            [("name", str, ""), ("ph", str, "X"), ("pid", int | str | None, 0), ("tid", int | str | None, 0),
             ("ts", float | None, None), ("dur", float | None, None), ("args", args | None, None)],
            gc=False,
        )  # fmt: skip
        self._empty = args()
        self._words: dict[str, dict[Any, int]] = {"name": {}, "pid": {}, "tid": {}}  # each value with its number
        self._names: dict[tuple[Any, Any], str] = {}
        self._open: dict[tuple[Any, Any], list[Any]] = {}
        self._parts: list[tuple[Any, ...]] = []
        self.count = 0
        self.unnamed = False  # stages follow from the order of threads

    def add(self, events: list[Any]) -> None:
        """Complete events; a begin waits for its end. Column by column: a million events pass here."""
        if [e.ph for e in events].count("X") < len(events):
            events = self._complete(events)
        count, args = len(events), [e.args or self._empty for e in events]
        self._parts.append((
            *(_coded(list(map(attrgetter(name), events)), seen) for name, seen in self._words.items()),
            np.array([e.ts for e in events], np.float64),
            np.array([e.dur for e in events], np.float64),
            *(_whole(args, key) for key in self.keys),
        ))  # fmt: skip
        self.count += count

    def _complete(self, events: list[Any]) -> list[Any]:
        """Events with a begin and a length; names of processes and threads are kept, ranges closed."""
        whole = []
        for event in events:
            if event.ph == "X":
                whole.append(event)
            elif event.ph == "M":
                self._named(event)
            elif event.ph in ("B", "E"):
                whole += self._paired(event)
        return whole

    def _named(self, event: Any) -> None:
        if event.name in ("thread_name", "process_name") and event.args is not None and event.args.name:
            tid = event.tid if event.name == "thread_name" else None
            self._names[event.pid, tid] = event.args.name

    def _paired(self, event: Any) -> list[Any]:
        begun = self._open.setdefault((event.pid, event.tid), [])
        if event.ph == "B":
            begun.append(event)
        elif begun and event.ts is not None and begun[-1].ts is not None:
            first = begun.pop()
            first.dur = max(event.ts - first.ts, 0.0)
            return [first]
        return []

    def table(self, source: Source) -> Table:
        """All of it."""
        label, pid, tid, start, length, *args = (np.concatenate(part) for part in zip(*self._parts, strict=True))
        self._parts.clear()
        keep = (length >= 0) & np.isfinite(start)
        if not keep.all():
            label, pid, tid, start, length, *args = (x[keep] for x in (label, pid, tid, start, length, *args))
        tracks, track = numbered(pid.astype(np.int64) * len(self._words["tid"]) + tid)
        columns: dict[str, Any] = {"label": label, "start_s": start * MICROSECOND, "duration_s": length * MICROSECOND}
        by_track, hosts = self._places(tracks)
        step = args[self.keys.index("step")] if "step" in self.keys else np.zeros(len(label), np.int32)
        works = [work_of(n) for n in self._words["name"]]
        forward = np.isin(label, [at for at, work in enumerate(works) if work is Work.FORWARD])
        self.unnamed = self._stages_in_order(tracks, by_track, track[forward], step[forward], start[forward])
        for role in ("replica", "stage", "tensor", "rank"):
            columns[role] = np.array([p.get(role, UNKNOWN) for p in by_track], np.int32)[track]
        if hosts:
            columns["host"] = np.array([p["host"] for p in by_track], np.int32)[track]
        for at, key in enumerate(self.keys):
            role = roles()[key]
            values = args[at]
            columns[role] = np.where(values >= 0, values, columns[role]) if role in columns else values
        placed = (columns["replica"] >= 0) & (columns["stage"] >= 0)
        own = rank_in_file(source.file)  # the number of a process is no rank where events say their place
        by_number = np.array(["numbered" in p for p in by_track])[track]
        columns["rank"] = np.where(placed & by_number, UNKNOWN if own is None else own, columns["rank"])
        for role in ("step", "microbatch", "chunk", "order"):
            columns.setdefault(role, np.full(len(label), UNKNOWN, np.int32))
        columns = {name: values if values.dtype.kind == "f" else _small(values) for name, values in columns.items()}
        names = list(self._words["name"])
        meta = {"labels": names, "works": [int(w) for w in works], "hosts": hosts}
        return Table(KIND, columns, source, meta=meta)

    def _stages_in_order(
        self,
        tracks: NDArray[np.int64],
        by_track: list[dict[str, int]],
        track: NDArray[Any],
        step: NDArray[Any],
        start: NDArray[Any],
    ) -> bool:
        """Threads without names that run forwards side by side: the stages of a process, in the order in which they begin.

        A thread without forwards belongs to the one numbered before it. Whether any had to be placed so.
        """
        if any(p.keys() & {"stage", "tensor"} for p in by_track) or {"stage", "tensor"} & {
            roles()[k] for k in self.keys
        }:
            return False
        first = np.full((len(tracks), int(step.max(initial=0)) + 1), np.inf)
        np.minimum.at(first, (track, np.maximum(step, 0)), start)
        tids, found = list(self._words["tid"]), False
        process, thread = tracks // len(tids), [tids[t] for t in (tracks % len(tids)).tolist()]
        for mine in (np.flatnonzero(process == pid) for pid in np.unique(process)):
            runs = [t for t in mine.tolist() if np.isfinite(first[t]).any()]
            if len(runs) < 2 or not all(isinstance(thread[t], int) for t in mine):
                continue
            begun = np.isfinite(first[runs]).all(axis=0)
            order = sorted(runs, key=lambda t: float(np.median(first[t, begun])) if begun.any() else first[t].min())
            for t in mine.tolist():
                owner = max((r for r in runs if thread[r] <= thread[t]), key=lambda r: thread[r], default=runs[0])
                by_track[t]["stage"] = order.index(owner)
                if "rank" in by_track[t]:
                    by_track[t]["replica"] = by_track[t].pop("rank")
            found = True
        return found

    def _places(self, tracks: NDArray[np.int64]) -> tuple[list[dict[str, int]], list[str]]:
        """Ranks and host of each track: by the names of thread and process; of a process without such a name by its number."""
        found, hosts = [], dict[str, int]()
        pids, tids = list(self._words["pid"]), list(self._words["tid"])
        for pid, tid in ((pids[t // len(tids)], tids[t % len(tids)]) for t in tracks.tolist()):
            process, thread = self._names.get((pid, None), ""), self._names.get((pid, tid), "")
            place = places_in(process) | places_in(thread)
            host = host_in(thread) or host_in(process)
            place["host"] = hosts.setdefault(host, len(hosts)) if host else UNKNOWN
            if "replica" not in place and "rank" not in place:
                number = int(pid) if isinstance(pid, int) or str(pid).isdigit() else None
                place |= (
                    {"replica" if "stage" in place else "rank": number, "numbered": 1}
                    if number is not None
                    else places_in(f"{pid} {tid}")
                )
            found.append(place)
        return found, list(hosts)


def _coded(values: list[Any], seen: dict[Any, int]) -> NDArray[np.int32]:
    """The number of each value; new ones are given theirs."""
    for value in sorted(set(values) - seen.keys(), key=str):
        seen[value] = len(seen)
    return np.fromiter(map(seen.__getitem__, values), np.int32, len(values))


def _whole(args: list[Any], key: str) -> NDArray[np.int32]:
    """Numbers of a place; what is none is unknown."""
    try:
        return np.fromiter(map(attrgetter(key), args), np.int32, len(args))
    except (TypeError, ValueError, OverflowError):
        found = np.array([UNKNOWN if v is None else v for v in map(attrgetter(key), args)], np.float64)
        return np.where(np.abs(found) < 2**31, found, UNKNOWN).astype(np.int32)


def _small(values: NDArray[Any]) -> NDArray[Any]:
    """In as few bytes as its numbers need: folders of a thousand ranks are held at once."""
    for kind in (np.int8, np.int16):
        if values.min(initial=0) >= np.iinfo(kind).min and values.max(initial=0) <= np.iinfo(kind).max:
            return values.astype(kind)
    return values
