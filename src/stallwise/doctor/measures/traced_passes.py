"""Passes, gradient exchange and optimizer of one rank's trace as rows of the operation table.

Passes are the ranges that the program names, else the work between two hand-offs that runs in one direction. What a pass waits for
in a collective is no time of its own. Which stage the rank is, only the other ranks tell: `_traced_ranks` puts them together.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from stallwise.doctor.measures._collective_names import HAND_OFFS
from stallwise.doctor.measures._collective_rows import CollectiveRows, collective_rows, step_numbers
from stallwise.doctor.measures._purpose import purposes_of
from stallwise.doctor.measures._spans import Spans
from stallwise.doctor.measures._trace_view import TraceView, view_of
from stallwise.doctor.measures._vocabulary import Host
from stallwise.doctor.measures._windows import Windows, find_windows
from stallwise.evidence.evidence import Item
from stallwise.evidence.fact import Table
from stallwise.evidence.operations import INTEGERS, KIND, UNKNOWN, Work
from stallwise.evidence.timeline import Kind, Timeline

WORKS = (Work.FORWARD, Work.BACKWARD, Work.WEIGHT_GRAD, Work.GRADIENT_SYNC, Work.OPTIMIZER, Work.INPUT)
NAMES = ("forward", "backward", "weight gradient", "gradient exchange", "optimizer", "input")
LABEL = {work: at for at, work in enumerate(WORKS)}
A_PASS = 0.1  # of the usual pass of its direction: what is shorter fills a buffer or measures a norm
A_WAIT = 0.005  # of a step: shorter waits for input move no replay
# "PP:3F12": virtual stage, action, microbatch.
_ACTION = re.compile(r"^PP:(\d+)(F|B|I|W)(\d+)$")
_ACTIONS = {"F": Work.FORWARD, "B": Work.BACKWARD, "I": Work.BACKWARD, "W": Work.WEIGHT_GRAD}
_WORDS = re.compile(
    r"^(?:(forward|fwd)|(backward|bwd))(?:[ _-]?(?:pass|step|compute|micro[ _-]?(?:step|batch)|mb))?[ _#:-]*(\d+)?$",
    re.IGNORECASE,
)
Floats = NDArray[np.float64]


@dataclass(slots=True, eq=False)
class _Pieces:
    """Pieces of work in the order in which the host asked for them."""

    asked_s: Floats
    start_s: Floats
    end_s: Floats
    label: NDArray[np.int64]


def from_timeline(timeline: Timeline) -> Iterator[Item]:
    """One table of a rank that belongs to a job."""
    world = timeline.distributed.get("world_size")
    alone = not isinstance(world, (int, float)) or world < 2
    if timeline.scope.rank is None or alone:
        return
    view, rows = view_of(timeline), collective_rows(timeline)
    windows = rows.windows if rows is not None else find_windows(view)
    if windows.unit == "window" or len(windows) < 2:
        return
    found = _named(view, rows) or _unnamed(view, rows, windows)
    if found is None:
        return
    parts = [found, *_others(view, rows, windows, found)]
    columns = {name: np.concatenate([p[name] for p in parts]) for name in found}
    columns["step"] = step_numbers(windows, columns.pop("asked_s"))
    keep = columns["step"] >= 0
    columns = {name: values[keep] for name, values in columns.items()}
    hand_offs = _hand_offs(timeline, rows)
    if not {LABEL[Work.FORWARD], LABEL[Work.FORWARD if hand_offs else Work.BACKWARD]} <= set(columns["label"].tolist()):
        return
    meta = {
        "labels": list(NAMES), "works": [int(w) for w in WORKS], "traced": True, "origin_s": timeline.origin_s,
        "host": str(timeline.properties.get("host_name") or ""), "hand_offs": hand_offs,
        "groups": [list(ranks) for ranks in (rows.members.values() if rows is not None else ())],
    }  # fmt: skip
    yield Table(KIND, columns, timeline.source, timeline.scope, meta)


def _rows(count: int, **known: NDArray[np.generic]) -> dict[str, NDArray[np.generic]]:
    return {name: np.full(count, UNKNOWN, np.int64) for name in INTEGERS if name != "step"} | known


def _waits(view: TraceView, rows: CollectiveRows | None) -> Spans:
    """Exchanges on the host while it computes nothing: one that was only asked for runs on beside the passes."""
    if rows is None:
        return Spans.of([], [])
    work = _on_host(view)
    return Spans.of(rows.start, rows.end) - Spans.of(work.start_s, work.end_s)


def _named(view: TraceView, rows: CollectiveRows | None) -> dict[str, NDArray[np.generic]] | None:
    """Ranges of both directions that the program names; on a device the work launched inside them."""
    t = view.timeline
    ranges = t.named(lambda n: pass_named(n) is not None, t.rows(Kind.ANNOTATION))
    named: list[Named] = [x for r in ranges.tolist() if (x := pass_named(t.text(r))) is not None]
    if {Work.FORWARD, Work.BACKWARD} - {x.work for x in named}:
        return None
    begin, end = t.start_s[ranges], t.end_s[ranges]
    asked = begin
    if len(view):
        own = ~purposes_of(view).communication
        at = np.searchsorted(begin, view.launch_start, side="right") - 1
        inside = own & (at >= 0) & (view.launch_start < end[np.maximum(at, 0)])
        begin, end = _extent(at[inside], view.start[inside], view.end[inside], len(ranges))
    else:
        waits, middle = _waits(view, rows), (begin + end) / 2
        begin, end = begin + waits.within(begin, middle), end - waits.within(middle, end)
    known = np.isfinite(begin)
    virtual = np.array([x.virtual_stage for x in named])
    stages = sorted(set(virtual.tolist()) - {UNKNOWN})
    every = _rows(
        len(ranges), label=np.array([LABEL[x.work] for x in named]), start_s=begin, duration_s=end - begin, asked_s=asked,
        microbatch=np.array([x.microbatch for x in named]), stage=np.full(len(ranges), stages[0] if stages else UNKNOWN),
        chunk=np.searchsorted(stages, virtual) if stages else np.zeros(len(ranges), np.int64),
    )  # fmt: skip
    return {name: values[known] for name, values in every.items()}


def _extent(at: NDArray[np.int64], start: Floats, end: Floats, count: int) -> tuple[Floats, Floats]:
    first, last = np.full(count, np.inf), np.full(count, -np.inf)
    np.minimum.at(first, at, start)
    np.maximum.at(last, at, end)
    nothing = ~np.isfinite(first)
    first[nothing] = last[nothing] = np.nan
    return first, last


def _unnamed(view: TraceView, rows: CollectiveRows | None, windows: Windows) -> dict[str, NDArray[np.generic]] | None:
    """Work in one direction, one pass from hand-off to hand-off."""
    work = _on_device(view) if len(view) else _on_host(view)
    of_passes = np.isin(work.label, [LABEL[Work.FORWARD], LABEL[Work.BACKWARD]])
    if not of_passes.any():
        return None
    hand = np.isin(np.array(rows.op), list(HAND_OFFS)) if rows is not None else np.zeros(0, bool)
    handed = np.sort(rows.issued[hand]) if rows is not None else np.zeros(0)
    key = np.stack(
        (work.label, np.searchsorted(handed, work.asked_s), np.searchsorted(windows.host, work.asked_s, "right"))
    )
    new = np.concatenate(([True], (key[:, 1:] != key[:, :-1]).any(axis=0)))
    at = np.cumsum(new) - 1
    first, last = _extent(at, work.start_s, work.end_s, int(at[-1]) + 1)
    label, asked = work.label[new], work.asked_s[new]
    if not len(view):
        waits = _waits(view, rows)
        last = np.maximum(last - waits.within(first, last), first)
    keep = _is_a_pass(label, last - first)
    return _rows(int(keep.sum()), label=label[keep], start_s=first[keep], duration_s=(last - first)[keep], asked_s=asked[keep],
                 chunk=np.zeros(int(keep.sum()), np.int64))  # fmt: skip


def _is_a_pass(label: NDArray[np.int64], length: Floats) -> NDArray[np.bool_]:
    """Against the length in whose like half of the time lies."""
    keep = np.zeros(len(label), bool)
    for one in (LABEL[Work.FORWARD], LABEL[Work.BACKWARD]):
        mine = np.flatnonzero(label == one)
        if len(mine):
            ordered = np.sort(length[mine])
            reach = np.cumsum(ordered)
            usual = ordered[np.searchsorted(reach, reach[-1] / 2)]
            keep[mine] = length[mine] >= A_PASS * usual
    return keep


def _on_device(view: TraceView) -> _Pieces:
    purposes = purposes_of(view)
    own = np.flatnonzero(~purposes.communication & ~purposes.crosses_bus & view.launched)
    own = own[np.argsort(view.launch_start[own], kind="stable")]
    label = np.where(purposes.in_backward[own], LABEL[Work.BACKWARD], LABEL[Work.FORWARD])
    label = np.where(purposes.in_optimizer[own], LABEL[Work.OPTIMIZER], label)
    return _Pieces(view.launch_start[own], view.start[own], view.end[own], label)


def _on_host(view: TraceView) -> _Pieces:
    """Operators that no other operator called, but for those that only move bytes between ranks."""
    t, tree = view.timeline, view.tree
    own = tree.row[tree.parent < 0]
    own = t.named(lambda n: not n.startswith("c10d::") and "param_comms" not in n, np.sort(own))
    own = own[view.working_lanes[t.lane[own]]]
    begin = t.start_s[own]
    label = np.where(view.ranges(Host.BACKWARD).contains(begin), LABEL[Work.BACKWARD], LABEL[Work.FORWARD])
    label = np.where(view.ranges(Host.OPTIMIZER).contains(begin), LABEL[Work.OPTIMIZER], label)
    return _Pieces(begin, begin, t.end_s[own], label)


def _others(
    view: TraceView, rows: CollectiveRows | None, windows: Windows, passes: dict[str, NDArray[np.generic]]
) -> Iterator[dict[str, NDArray[np.generic]]]:
    """After the last pass of a step: the exchange of gradients and the optimizer; and waits for input, where nothing runs."""
    step = np.searchsorted(windows.host, passes["asked_s"], "right") - 1
    ends = np.asarray(passes["start_s"]) + np.asarray(passes["duration_s"])
    count = len(windows)
    last = np.full(count + 1, -np.inf)
    np.maximum.at(last, np.clip(step, 0, count), ends)
    if rows is not None:
        others = ~np.isin(np.array(rows.op), list(HAND_OFFS))
        yield from _after_passes(
            Work.GRADIENT_SYNC, rows.issued[others], rows.start[others], rows.end[others], windows, last
        )
    work = _on_device(view) if len(view) else _on_host(view)
    mine = work.label == LABEL[Work.OPTIMIZER]
    yield from _after_passes(Work.OPTIMIZER, work.asked_s[mine], work.start_s[mine], work.end_s[mine], windows, last)
    busy = Spans.of(view.start, view.end)
    waits = view.ranges(Host.LOADER) - busy
    waits = waits.longer_than(A_WAIT * float(np.median(np.diff(windows.host))))
    if len(waits):
        yield _rows(len(waits), label=np.full(len(waits), LABEL[Work.INPUT]), start_s=waits.start, duration_s=waits.length_s,
                    asked_s=waits.start, chunk=np.zeros(len(waits), np.int64))  # fmt: skip


def _after_passes(
    work: Work, asked: Floats, start: Floats, end: Floats, windows: Windows, last: Floats
) -> Iterator[dict[str, NDArray[np.generic]]]:
    """One row a step, from the end of the last pass."""
    count = len(windows)
    step = np.searchsorted(windows.host, asked, "right") - 1
    inside = (step >= 0) & (step < count)
    step, start, end, asked = step[inside], start[inside], end[inside], asked[inside]
    beyond = end > last[step]
    first, final = _extent(step[beyond], np.maximum(start, last[step])[beyond], end[beyond], count)
    there = np.flatnonzero(np.isfinite(first))
    if len(there):
        yield _rows(len(there), label=np.full(len(there), LABEL[work]), start_s=first[there], duration_s=(final - first)[there],
                    asked_s=windows.host[:-1][there], chunk=np.zeros(len(there), np.int64))  # fmt: skip


def _hand_offs(timeline: Timeline, rows: CollectiveRows | None) -> list[tuple[str, int, bool]]:
    """With whom the rank exchanges what passes on: the operation, the other's number, and whether that counts all ranks."""
    if rows is None:
        return []
    found = {
        (op, int(peer), True) for op, peer in zip(rows.op, rows.peer, strict=True) if op in HAND_OFFS and peer >= 0
    }
    if not found:
        for row in timeline.named(lambda n: n in _HAND_OFF_OPS, timeline.rows(Kind.CPU_OP)).tolist():
            given = timeline.details_of(row).get("Concrete Inputs")
            peer = str(given[PEER_INPUT]) if isinstance(given, list) and len(given) > PEER_INPUT else ""
            if peer.isdigit():
                found.add((_HAND_OFF_OPS[timeline.text(row)], int(peer), False))
    if not found and any(op in HAND_OFFS for op in rows.op):
        return [("send-recv", UNKNOWN, False)]
    return sorted(found)


PEER_INPUT = 2  # of the operator: tensors, group, the other rank within that group
_HAND_OFF_OPS = {"c10d::send": "send", "c10d::recv_": "recv"}


@dataclass(frozen=True, slots=True)
class Named:
    """What the name of a pass tells."""

    work: Work
    virtual_stage: int = UNKNOWN
    microbatch: int = UNKNOWN


@lru_cache(maxsize=4096)
def pass_named(name: str) -> Named | None:
    """The pass that a range is, by its name."""
    if action := _ACTION.match(name):
        return Named(_ACTIONS[action[2]], int(action[1]), int(action[3]))
    if words := _WORDS.match(name):
        return Named(Work.FORWARD if words[1] else Work.BACKWARD, microbatch=int(words[3]) if words[3] else UNKNOWN)
    return None
