"""Events into columns, block by block; strings and details interned; sorted once at the end."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stallwise.evidence.fact import Scope, Source
from stallwise.evidence.timeline import GPU_KINDS, NO_ID, ON_DEVICE, Kind, Lane, MemoryCounters, Timeline
from stallwise.readers.native import _trace_kinds as kinds
from stallwise.readers.native._trace_events import (
    ABSENT,
    JSON_KEYS,
    LAUNCH_DETAIL,
    NO_ARGS,
    OP_DETAIL,
    SYNC_DETAIL,
    Args,
    Event,
)  # fmt: skip
from stallwise.readers.native._trace_sorted import QUICK, WITHOUT_TIME, Has, as_event

PLAUSIBLE_US = 30 * 86400e6  # no trace spans a month: events farther than this from the middle have a broken clock


class Codes(dict[Any, int]):
    """Values to codes, in order of appearance."""

    def __missing__(self, value: Any) -> int:
        code = self[value] = len(self)
        return code

    def of(self, values: Iterable[Any]) -> NDArray[np.int32]:
        """The codes of many."""
        return np.array(list(map(self.__getitem__, values)), dtype=np.int32)


@dataclass
class Columns:
    """Grows by blocks of events; `finish` makes the timeline."""

    names: Codes = field(default_factory=Codes)
    lanes: Codes = field(default_factory=Codes)  # (pid, tid)
    details: Codes = field(default_factory=Codes)  # raw JSON
    kinds: kinds.KindCodes = field(default_factory=kinds.KindCodes)
    parts: dict[str, list[NDArray[Any]]] = field(default_factory=dict)
    labels: dict[tuple[Any, Any], str] = field(default_factory=dict)  # of threads (pid, tid) and processes (pid, None)
    open_ranges: dict[tuple[Any, Any], list[Event]] = field(default_factory=dict)
    untimed: int = 0  # events without a usable time
    block: int = 0  # the number of the block that is being taken
    part_blocks: list[int] = field(default_factory=list)  # of each part
    memory_blocks: list[int] = field(default_factory=list)  # of each part of the allocator's counters

    def add(self, events: list[Event]) -> None:
        """Takes a block."""
        whole = [e for e in events if e.ph == "X"]
        if len(whole) != len(events):
            for event in events:
                if event.ph not in ("X", "s", "f", "t"):
                    self._odd(event, whole)
        if whole:
            self._append(whole, np.array([self.kinds[e.cat] for e in whole], dtype=np.uint8))

    def _odd(self, event: Event, whole: list[Event]) -> None:
        """Names of threads, allocator instants, and ranges written as a begin and an end."""
        if event.ph == "M":
            if event.name in ("process_name", "thread_name") and event.args is not None:
                thread = event.tid if event.name == "thread_name" else None
                self.labels[(event.pid, thread)] = _text(event.args.name)
        elif event.ph in ("i", "I"):
            if event.args is not None and (event.cat == "cpu_instant_event" or event.name == "[memory]"):
                event.cat = "cpu_instant_event"
                whole.append(event)
        elif event.ph == "B":
            self.open_ranges.setdefault((event.pid, event.tid), []).append(event)
        elif event.ph == "E":
            stack = self.open_ranges.get((event.pid, event.tid))
            if stack:
                begun = stack.pop()
                if begun.ts is not None and event.ts is not None:
                    begun.dur = event.ts - begun.ts
                    whole.append(begun)

    def add_sorted(self, events: list[Any]) -> None:
        """Takes a block whose events were decoded by category; each category brings only the columns it has."""
        groups: defaultdict[Any, list[Any]] = defaultdict(list)
        for event in events:
            groups[type(event)].append(event)
        rest: list[Event] = []
        for kind, members in groups.items():
            category = kind.__struct_config__.tag
            if kind in WITHOUT_TIME:
                continue
            if kind not in QUICK:
                rest += [as_event(e, category) for e in members]
            else:
                self._append(members, np.full(len(members), self.kinds[category], dtype=np.uint8), QUICK[kind])
        if rest:
            self.add(rest)

    def _append(self, events: list[Any], kind: NDArray[np.uint8], has: Has = Has.ANYTHING) -> None:
        """Events with the columns that their sort brings; the others stay empty."""
        count = len(events)
        nobody, no_detail = np.full(count, NO_ID, dtype=np.int64), np.full(count, NO_ID, dtype=np.int32)
        args: list[Any] = []
        if has is not Has.NOTHING:
            empty = type(next((e.args for e in events if e.args is not None), NO_ARGS))()
            args = [e.args or empty for e in events]
        sized, detailed = has in (Has.LAUNCH, Has.ANYTHING), has not in (Has.NOTHING, Has.IDS)
        columns: dict[str, NDArray[Any]] = {
            "start": np.array([e.ts for e in events], dtype=np.float64),
            "duration": np.array([e.dur for e in events], dtype=np.float64),
            "name": self.names.of([e.name for e in events]),
            "lane": self.lanes.of(zip([e.pid for e in events], [e.tid for e in events], strict=True)),
            "kind": kind,
            "external": _ids([a.external for a in args]) if args else nobody,
            "correlation": _ids([a.correlation for a in args]) if args and has is not Has.SHAPES else nobody,
            "size_bytes": np.array([a.size for a in args], dtype=np.float64) if sized else np.full(count, np.nan),
            "detail": self._details(kind, args) if detailed else no_detail,
        }
        if has is Has.ANYTHING:
            if np.any(columns["external"] == NO_ID):
                old = _ids([a.external_old for a in args])
                columns["external"] = np.where(columns["external"] == NO_ID, old, columns["external"])
            memory = kind == int(Kind.MEMORY)
            if memory.any():
                self._memory(columns, memory, args)
        self._take(columns)

    def _take(self, columns: dict[str, NDArray[Any]]) -> None:
        self.part_blocks.append(self.block)
        for key, column in columns.items():
            self.parts.setdefault(key, []).append(column)

    def join(self, other: Columns) -> None:
        """Takes over what somebody else read of the same trace: its codes become ours, its blocks fall into place."""
        for nothing in _NOTHING:
            self.details[nothing]
        recoded = {
            "name": self.names.of(other.names),
            "lane": self.lanes.of(other.lanes),
            "detail": self.details.of(other.details)[len(_NOTHING) :] - len(_NOTHING),
        }
        for column, codes in recoded.items():
            # The last entry stands for "none", which is -1.
            table = np.append(codes, np.int32(NO_ID))
            other.parts[column] = [table[part] for part in other.parts[column]]
        self.part_blocks += other.part_blocks
        self.memory_blocks += other.memory_blocks
        for key, parts in other.parts.items():
            self.parts[key] = self.parts.get(key, []) + parts
        turns = {
            False: np.argsort(self.part_blocks, kind="stable"),
            True: np.argsort(self.memory_blocks, kind="stable"),
        }
        for key, parts in self.parts.items():
            self.parts[key] = [parts[at] for at in turns[key.startswith("memory.")].tolist()]
        self.part_blocks.sort()
        self.memory_blocks.sort()
        self.labels |= other.labels
        self.untimed += other.untimed

    def _memory(self, columns: dict[str, NDArray[Any]], where: NDArray[np.bool_], args: list[Args]) -> None:
        found = [args[i] for i in np.flatnonzero(where).tolist()]
        columns["size_bytes"][where] = np.array([a.memory_size for a in found], dtype=np.float64)
        # Device type 0 is the CPU in PyTorch's enumeration; its own index there means nothing.
        device = [a.device_id if a.device_type not in (0, None) and a.device_id is not None else NO_ID for a in found]
        counters: dict[str, NDArray[Any]] = {
            "allocated": np.array([a.allocated for a in found], dtype=np.float64),
            "reserved": np.array([a.reserved for a in found], dtype=np.float64),
            "address": np.array([(a.address or 0) & 0xFFFFFFFFFFFFFFFF for a in found], dtype=np.uint64),
            "device": np.clip(device, NO_ID, 2**31 - 1).astype(np.int32),
        }
        self.memory_blocks.append(self.block)
        for key, column in counters.items():
            self.parts.setdefault(f"memory.{key}", []).append(column)

    def _details(self, kind: NDArray[np.uint8], args: list[Any]) -> NDArray[np.int32]:
        codes = np.full(len(kind), NO_ID, dtype=np.int32)
        details = self.details
        if not details:
            for key in _NOTHING:
                details[key]
        for group, keys in _DETAILED:
            rows = np.flatnonzero(group[kind])
            if len(rows):
                mine = args if len(rows) == len(args) else [args[i] for i in rows.tolist()]
                codes[rows] = details.of(keys(mine))
        return np.maximum(codes - len(_NOTHING), NO_ID)

    def finish(self, source: Source, scope: Scope, base_s: float = 0.0) -> Timeline:
        """In order of time; the parts are given up one by one so that memory never holds everything twice."""
        starts = np.concatenate(self.parts["start"])
        durations = np.concatenate(self.parts.pop("duration"))
        durations = np.where(np.isfinite(durations) & (durations > 0), durations, 0.0)
        good = np.isfinite(starts)
        if good.any() and not np.ptp(starts) < PLAUSIBLE_US:
            good &= np.abs(starts - np.median(starts[good])) < PLAUSIBLE_US
        self.untimed += int(len(starts) - good.sum())
        order = _in_time(starts, durations)
        order = order if good.all() else order[good[order]]
        origin_us = float(starts[order[0]]) if len(order) else 0.0
        taken: dict[str, Any] = {
            "start_s": (starts[order] - origin_us) * 1e-6, "duration_s": durations[order] * 1e-6,
            "source": source, "scope": scope, "origin_s": base_s + origin_us * 1e-6,
        }  # fmt: skip
        del starts, durations, self.parts["start"]
        taken["memory"] = self._finished_memory(order)
        for key in list(self.parts):
            taken[key] = np.concatenate(self.parts.pop(key))[order]
        names = list(self.names)
        self._resolve_kinds(taken, names)
        taken["lane"], lanes = self._resolve_lanes(taken)
        return Timeline(**taken, names=names, lanes=lanes, details=_as_json(self.details))

    def _finished_memory(self, order: NDArray[np.intp]) -> MemoryCounters | None:
        if "memory.allocated" not in self.parts:
            return None
        where = np.concatenate(self.parts["kind"]) == int(Kind.MEMORY)
        place = np.cumsum(where) - 1
        rows = place[order[where[order]]]
        columns = [
            np.concatenate(self.parts.pop(f"memory.{key}"))[rows]
            for key in ("allocated", "reserved", "address", "device")
        ]
        return MemoryCounters(*columns)

    def _resolve_kinds(self, taken: dict[str, NDArray[Any]], names: list[str]) -> None:
        kind, name = taken["kind"], taken["name"]
        ranges = np.fromiter((kinds.is_range(n) for n in names), dtype=bool, count=len(names))
        kind[(kind == int(Kind.CPU_OP)) & ranges[name]] = int(Kind.ANNOTATION)
        queued = np.flatnonzero(kind == kinds.ENGINE_QUEUE)
        if len(queued):
            kind[queued] = [int(kinds.of_queue_word(names[c])) for c in name[queued].tolist()]
        loose = np.flatnonzero(kind == kinds.UNCATEGORISED)
        if len(loose):
            processes = [pid for pid, _ in self.lanes]
            labels = [self.labels.get((pid, None), str(pid)) for pid in processes]
            pairs = zip(taken["lane"][loose].tolist(), name[loose].tolist(), strict=True)
            kind[loose] = [int(kinds.of_process(labels[at], names[code])) for at, code in pairs]

    def _resolve_lanes(self, taken: dict[str, NDArray[Any]]) -> tuple[NDArray[np.int32], list[Lane]]:
        """A host process and a device may bear the same number, so being on the device is part of a lane."""
        mixed = taken.pop("lane") * 2 + _mask(*ON_DEVICE)[taken["kind"]]
        seen = np.bincount(mixed) > 0
        known = list(self.lanes)
        lanes = [self._lane(known[code >> 1], bool(code & 1)) for code in np.flatnonzero(seen).tolist()]
        return (np.cumsum(seen, dtype=np.int32) - 1)[mixed], lanes

    def _lane(self, key: tuple[Any, Any], on_device: bool) -> Lane:
        pid, tid = key
        thread = str(tid).removeprefix("stream ") if on_device else str(tid)
        return Lane(on_device, str(pid), thread, self.labels.get((pid, tid), ""))


_launch_fields = attrgetter(*LAUNCH_DETAIL)
_sync_fields = attrgetter(*SYNC_DETAIL)
_op_fields = attrgetter(*OP_DETAIL)
_BETWEEN = b"\0"  # fields of a key; no JSON holds it
_key = _BETWEEN.join


# A key is the text of the kept args; the number of its fields tells which they are (see _as_json). Most events have only the
# first few of them, OP_DETAIL[:4] and LAUNCH_DETAIL[:8], which are spelled out because that is twice as quick.
def _op_keys(args: list[Any]) -> list[bytes]:
    return [
        _key((a.dims, a.types, a.strides, a.concrete))
        if a.collective is ABSENT and a.dims_old is ABSENT
        else _key(_op_fields(a))
        for a in args
    ]


def _launch_keys(args: list[Any]) -> list[bytes]:
    return [
        _key((a.grid, a.block, a.registers, a.shared, a.occupancy, a.graph, a.graph_node, a.copy_kind))
        if a.collective is ABSENT
        else _key(_launch_fields(a))
        for a in args
    ]


def _sync_keys(args: list[Any]) -> list[bytes]:
    return [_key(_sync_fields(a)) for a in args]


def _in_time(starts: NDArray[np.float64], durations: NDArray[np.float64]) -> NDArray[np.intp]:
    """The order by start, of those that start together the longer first: only these are looked at twice."""
    order = np.argsort(starts, kind="stable")
    ordered = starts[order]
    again = ordered[1:] == ordered[:-1]
    tied = np.flatnonzero(np.append(again, False) | np.append(False, again))
    rows = order[tied]
    order[tied] = rows[np.lexsort((-durations[rows], starts[rows]))]
    return order


def _ids(values: list[int | None]) -> NDArray[np.int64]:
    try:
        return np.array(values, dtype=np.int64)
    except (TypeError, OverflowError, ValueError):  # null, or unsigned numbers that mean "none"
        return np.array([v if v is not None and -(2**63) <= v < 2**63 else NO_ID for v in values], dtype=np.int64)


def _mask(*wanted: Kind) -> NDArray[np.bool_]:
    mask = np.zeros(256, dtype=bool)
    mask[[int(k) for k in wanted]] = True
    return mask


_DETAILED = (
    (_mask(Kind.CPU_OP, Kind.ANNOTATION), _op_keys),
    (_mask(*GPU_KINDS), _launch_keys),
    (_mask(Kind.SYNC), _sync_keys),
)
_NOTHING = tuple(_key((b"",) * len(fields)) for fields in (OP_DETAIL[:4], LAUNCH_DETAIL[:8], SYNC_DETAIL))
_FIELDS_BY_LENGTH = {
    len(fields): [json.dumps(JSON_KEYS[f]).encode() for f in fields]
    for fields in (OP_DETAIL[:4], OP_DETAIL, LAUNCH_DETAIL[:8], LAUNCH_DETAIL, SYNC_DETAIL)
}
assert len(_FIELDS_BY_LENGTH) == 5, "each list of fields needs its own length"


def _as_json(details: Codes) -> list[bytes]:
    keys = [key.split(_BETWEEN) for key in details]
    found = [
        b"{" + b",".join(k + b":" + v for k, v in zip(_FIELDS_BY_LENGTH[len(values)], values, strict=True) if v) + b"}"
        for values in keys
    ]
    return found[len(_NOTHING) :]


def _text(raw: Any) -> str:
    try:
        return str(json.loads(bytes(raw)))
    except ValueError:
        return ""
