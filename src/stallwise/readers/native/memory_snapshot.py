"""torch.cuda.memory._dump_snapshot pickles: what filled the device at its peak, and the allocation that failed."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stallwise.errors import UnreadableInput
from stallwise.evidence.artifact import Artifact
from stallwise.evidence.catalog import memory as m
from stallwise.evidence.catalog import quantities
from stallwise.evidence.evidence import Item
from stallwise.evidence.fact import Fact, Note, Scope, Series, Source, Table
from stallwise.readers._traceback import Frame, phase_of
from stallwise.readers.native._memory_over_time import memory_over_time
from stallwise.readers.native._plain_pickle import load_plain, looks_like_pickle
from stallwise.readers.native._snapshot import CATEGORIES, LEAVING, Moment, category_of, moment_at, place_of, traces
from stallwise.units import Unit, show

FORMAT = "PyTorch memory snapshot"
CAPTURE = "torch.cuda.memory._record_memory_history(); ...; torch.cuda.memory._dump_snapshot('snapshot.pickle')"
EXCLUSIVE = True
MAX_BYTES = 2 << 30
TIMELINE_POINTS = 2000
TAKES = ("segment_alloc", "segment_map")
RETURNS = ("segment_free", "segment_unmap")
_PHASES = {
    "optimizer": "optimizer",
    "temporary": "backward",
    "gradients": "backward",
    "logits": "loss",
    "weights": "load",
}


def recognises(name: str, head: bytes) -> bool:
    """A pickle that speaks of segments and device traces."""
    return looks_like_pickle(head) and (b"device_traces" in head or b"segments" in head or b"total_size" in head)


def read(artifact: Artifact) -> Iterator[Item]:
    """Facts of the failed allocation and of the peak."""
    with artifact.open() as stream:
        try:
            data = stream.read(MAX_BYTES)
        except (OSError, EOFError, ValueError) as error:
            raise UnreadableInput(
                f"{artifact.name} is cut or damaged: {error}", hint="dump the snapshot again"
            ) from error
    snapshot = load_plain(data, artifact.name)
    if isinstance(snapshot, list):  # torch.cuda.memory_snapshot() is the list of segments alone
        snapshot = {"segments": snapshot, "device_traces": []}
    if not isinstance(snapshot, dict) or "segments" not in snapshot:
        raise UnreadableInput(f"{artifact.name} is a pickle but no memory snapshot",
                              hint="torch.cuda.memory._dump_snapshot('snap.pickle')")  # fmt: skip
    try:
        yield from _read(snapshot, Source(artifact.name))
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        raise UnreadableInput(f"{artifact.name} is not laid out like a memory snapshot: {error!r}",
                              hint="dump it with torch 1.13 or later") from error  # fmt: skip


def _read(snapshot: dict[str, Any], source: Source) -> Iterator[Item]:
    device, trace = max(enumerate(traces(snapshot)), key=lambda own: len(own[1]), default=(0, []))
    failures = [i for i, e in enumerate(trace) if e.get("action") == "oom"]
    if not trace:
        yield Note("the snapshot has no allocation history; only its last state is known", source)
    at = failures[-1] if failures else _peak_index(trace, moment_at(snapshot, device, None))
    moment = moment_at(snapshot, device, at)
    if failures:
        yield from _failure(moment, trace[failures[-1]], failures, source)
    yield from _composition(moment, source)
    yield from _end(snapshot, device, trace, source)
    if trace:
        start = moment_at(snapshot, device, 0)
        yield from _timeline(trace, start, source, device)
        yield from memory_over_time(trace, start, source, device)


def _failure(moment: Moment, entry: dict[str, Any], failures: list[int], source: Source) -> Iterator[Item]:
    place = Source(source.file, f"trace entry {failures[-1]}")
    yield Fact(m.FAILED, 1.0, place, samples=len(failures))
    yield Fact(m.REQUEST, float(entry["size"]), place)
    free = float(entry.get("device_free", float("nan")))
    if free == free:
        yield Fact(m.FREE, free, place)
    yield Fact(m.ALLOCATED, moment.allocated_bytes, place)
    yield Fact(m.RESERVED, moment.reserved_bytes, place)
    yield Fact(m.UNUSED_RESERVED, max(0.0, moment.reserved_bytes - moment.allocated_bytes), place)
    holes = sorted(moment.holes(), reverse=True)
    yield Fact(m.LARGEST_HOLE, float(holes[0]) if holes else 0.0, place)
    yield Table(
        "memory.holes", {"size_bytes": np.array(holes[:64], dtype=np.float64)}, place, meta={"count": len(holes)}
    )
    frames = entry.get("frames") or []
    if where := place_of(frames):
        yield Fact(m.PLACE, where, place)
    named = phase_of([Frame(str(f.get("filename", "")), str(f.get("name", ""))) for f in frames])
    if phase := _PHASES.get(category_of(frames), named):
        yield Fact(m.PHASE, phase, place)


def _end(snapshot: dict[str, Any], device: int, trace: list[dict[str, Any]], source: Source) -> Iterator[Item]:
    """What is held when the record ends, and how often the driver was asked for memory until then."""
    end = moment_at(snapshot, device, None)
    place = Source(source.file, "end of the record")
    yield Fact(m.END_ALLOCATED, end.allocated_bytes, place)
    yield Fact(m.END_RESERVED, end.reserved_bytes, place)
    for quantity, actions in ((m.SEGMENT_ALLOCS, TAKES), (m.SEGMENT_FREES, RETURNS)):
        yield Fact(quantity, float(sum(e.get("action") in actions for e in trace)), source, samples=len(trace))


def _composition(moment: Moment, source: Source) -> Iterator[Item]:
    totals = dict.fromkeys(CATEGORIES, 0.0)
    places: dict[tuple[str, str], float] = {}
    blocks = []
    for block in moment.live.values():
        kind, where = category_of(block["frames"]), place_of(block["frames"])
        totals[kind] += block["size"]
        places[kind, where] = places.get((kind, where), 0.0) + block["size"]
        blocks.append((float(block["size"]), where, kind))
    where_source = Source(source.file, "live blocks at the peak")
    yield Fact(m.PEAK, moment.allocated_bytes, where_source)
    parts = sorted(((size, kind) for kind, size in totals.items() if size), reverse=True)
    yield Note(
        "alive at the peak: " + ", ".join(f"{kind} {show(size, Unit.BYTE)}" for size, kind in parts), where_source
    )
    for kind, size in totals.items():
        yield Fact(quantities()[f"memory.{kind}"], size, where_source)
    made = [b for b in blocks if b[2] not in ("weights", "unexplained")]
    if made:
        largest = max(made)
        yield Fact(m.LARGEST_TENSOR, largest[0], where_source)
        yield Fact(m.LARGEST_PLACE, largest[1], where_source)
        rest = [b[0] for b in made if b[1] != largest[1]]
        yield Fact(m.NEXT_TENSOR, max(rest, default=0.0), where_source)
    rows = sorted(places.items(), key=lambda item: -item[1])
    yield Table(
        "memory.peak",
        {
            "category": np.array([kind for (kind, _), _ in rows], dtype=object),
            "place": np.array([where for (_, where), _ in rows], dtype=object),
            "size_bytes": np.array([size for _, size in rows], dtype=np.float64),
        },
        where_source,
    )


def _peak_index(trace: list[dict[str, Any]], end: Moment) -> int | None:
    """The entry before which most is alive, found by undoing from the end; None where the end is the peak."""
    before = end.allocated_bytes - np.cumsum(_changes(trace)[::-1])[::-1]
    if not len(before) or before.max() <= end.allocated_bytes:
        return None
    return int(np.flatnonzero(before == before.max())[-1])


def _changes(trace: list[dict[str, Any]]) -> NDArray[np.float64]:
    """Bytes that each entry takes or gives back."""
    signs = {"alloc": 1.0, **dict.fromkeys(LEAVING, -1.0)}
    return np.array([signs.get(e.get("action", ""), 0.0) * float(e.get("size", 0)) for e in trace])


def _timeline(trace: list[dict[str, Any]], start: Moment, source: Source, device: int) -> Iterator[Item]:
    alive = start.allocated_bytes + np.cumsum(_changes(trace))
    times = np.array([float(e.get("time_us", i)) for i, e in enumerate(trace)]) * 1e-6
    if "time_us" in trace[0]:
        yield Fact(m.RECORD_TIME, float(times[-1] - times[0]), source, samples=len(trace))
    keep = _outline(alive)
    yield Series(m.LIVE_BYTES, times[keep] - times[0], alive[keep], source, Scope(gpu=device), over="time_s")


def _outline(alive: NDArray[np.float64]) -> NDArray[np.intp]:
    """The entries to draw: the first, the last, and of each piece the lowest and the highest, so that no peak is lost."""
    if len(alive) <= TIMELINE_POINTS:
        return np.arange(len(alive))
    edges = np.linspace(0, len(alive), TIMELINE_POINTS // 2).astype(int)
    pieces = [(b, alive[b:e]) for b, e in pairwise(edges.tolist()) if e > b]
    kept = {0, len(alive) - 1, *(b + int(p.argmin()) for b, p in pieces), *(b + int(p.argmax()) for b, p in pieces)}
    return np.array(sorted(kept))
