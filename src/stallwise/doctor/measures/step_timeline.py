"""One step of a rank as boxes that can be zoomed: its accounts along time, streams, threads, Python frames, and what proves what.

The step whose length is nearest the median, and the slowest where it stands out. What is drawn one by one and what is summed up
in blocks is decided here, so that the table stays small whatever the trace holds; the same boxes are told in other times too
(as traced, replayed with a change), and the chain that made the step as long as it was is marked.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stallwise.doctor.measures._changes import replays_of
from stallwise.doctor.measures._critical_path import critical_path
from stallwise.doctor.measures._event_facts import behind, event_facts
from stallwise.doctor.measures._merged_events import Shown, shown_events
from stallwise.doctor.measures._step_index import StepIndex, step_index
from stallwise.doctor.measures._step_versions import (
    NO_CATEGORIES,
    CategorySpans,
    Version,
    categories_between,
    versions_of,
)
from stallwise.doctor.measures._tracks import Track, tracks_of
from stallwise.doctor.measures._vocabulary import Work
from stallwise.evidence.evidence import Item
from stallwise.evidence.fact import Source, Table
from stallwise.evidence.ledger import Category
from stallwise.evidence.timeline import NO_ID, Kind, Timeline

KIND = "timeline"
ORDER = 4  # after the gains, which replay the same changes
MOST_EVENTS = 9_000  # drawn one by one: 3 MB hold four ranks of them
MOST_BLOCKS = 3_000
MOST_CATEGORIES = 2_500  # boxes of the ledger along time, for each telling
MOST_LINKS = 4_000  # of the critical path
LONGEST_NAME = 300  # letters: templates may have thousands
STANDS_OUT = 1.5  # times the usual step: something happened in it that the usual one does not show
AS_USUAL = 0.05  # of the median: a step that can also be replayed stands for the usual one
CATEGORIES = tuple(Category)
WORKS = [work.name.lower().replace("_", " ") for work in Work]
CATEGORY_TRACK = 0
EVERY = -1  # a box that is there in every telling
EXPLAINS = 0.002  # of the step: a host event in which the device idles as long may be what a finding points at

Columns = dict[str, NDArray[Any]]


def from_timeline(timeline: Timeline) -> Iterator[Item]:
    """The usual step of one rank, and the slowest where it stands out."""
    index = step_index(timeline)
    if not len(timeline):
        return
    lengths = np.diff(index.windows.device)
    away = np.abs(lengths - np.median(lengths))
    usual = int(np.argmin(away))
    if index.view.launched.any():
        played = int(np.argmin(away[: replays_of(index).steps]))
        if away[played] <= AS_USUAL * float(np.median(lengths)):
            usual = played
    yield from _scene(index, usual, "usual")
    slowest = int(np.argmax(lengths))
    if lengths[slowest] > STANDS_OUT * lengths[usual]:
        yield from _scene(index, slowest, "slowest")


@dataclass(frozen=True, slots=True, eq=False)
class _Events:
    """The events of all tracks, one after the other."""

    track: NDArray[np.int64]
    depth: NDArray[np.int64]
    row: NDArray[np.intp]


def _scene(index: StepIndex, at: int, which: str) -> Iterator[Item]:
    t = index.timeline
    lo, hi = float(index.windows.device[at]), float(index.windows.device[at + 1])
    if not hi > lo:
        return
    # The host runs ahead: what it did for this step began before the device came to it, by a step at most.
    begin = max(min(float(index.windows.host[at]), lo), lo - (hi - lo))
    tracks, left_out = tracks_of(index, begin, lo, hi)
    if not tracks:
        return
    events = _laid_out(tracks)
    idle_s, category = _explained(index, events.row, lo, hi)
    shown = shown_events(
        events.track * 64 + events.depth,
        t.start_s[events.row],
        t.end_s[events.row],
        t.name[events.row].astype(np.int64),
        idle_s > EXPLAINS * (hi - lo),
        MOST_EVENTS,
        MOST_BLOCKS,
    )
    columns, texts = _boxes(index, events, shown, lo, category, idle_s)
    versions = list(versions_of(index, at, events.row))
    for number, version in enumerate(versions, 1):
        columns[f"start_s:{number}"] = _over(np.minimum, version.start_s, shown)
        columns[f"end_s:{number}"] = _over(np.maximum, version.end_s, shown)
    names = _Names(t)
    columns["name"] = names.codes(columns["name"])
    columns["operator"] = names.codes(columns["operator"])
    categories = categories_between(index, lo, hi) if len(index.view) else NO_CATEGORIES
    category_boxes = [
        _category_boxes(spans, number, hi - lo, len(versions), names)
        for number, spans in enumerate([categories, *(v.categories for v in versions)])
    ]
    joined = {key: _small(key, np.concatenate([part[key] for part in (*category_boxes, columns)])) for key in columns}
    label = index.windows.labels[at] if at < len(index.windows.labels) else f"{index.windows.unit} {at}"
    single = columns["count"] == 1
    meta = {
        "which": which,
        "step": label,
        "unit": index.windows.unit,
        "length_s": hi - lo,
        "begin_s": begin - lo,
        "names": names.words,
        "facts": texts,
        "accounts": [a.value for a in CATEGORIES],
        "works": WORKS,
        "tracks": [["accounts", "where the time goes"], *([track.kind, track.label] for track in tracks)],
        "versions": _version_rows(index, hi - lo, versions),
        "path": _path(index, at, lo, hi, tracks),
        "events": len(events.row),
        "alone": int(single.sum()),
        "merged": int(columns["count"][~single].sum()),
        "blocks": int((~single).sum()),
        "left_out": left_out,
    }
    yield Table(KIND, joined, Source(t.source.file, label), t.scope, meta)


def _small(key: str, values: NDArray[Any]) -> NDArray[Any]:
    """Every rank of a job has such a table: codes and sums need no eight bytes, times and ids do."""
    if key == "correlation" or key.startswith(("start_s", "end_s")):
        return values
    return values.astype(np.float32 if values.dtype.kind == "f" else np.int32)


def _laid_out(tracks: list[Track]) -> _Events:
    if not tracks:
        nothing = np.empty(0, np.int64)
        return _Events(nothing, nothing, nothing)
    return _Events(
        np.concatenate([np.full(len(track.rows), number) for number, track in enumerate(tracks, CATEGORY_TRACK + 1)]),
        np.concatenate([track.depth for track in tracks]),
        np.concatenate([track.rows for track in tracks]),
    )


def _explained(
    index: StepIndex, rows: NDArray[np.intp], lo: float, hi: float
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """By event: how long the device idled in it, and the account of that time or of the device's work; NO_ID for none."""
    if not len(index.view):
        return np.zeros(len(rows)), np.full(len(rows), NO_ID, np.int64)
    t, p = index.timeline, index.purposes
    start, end = np.clip(t.start_s[rows], lo, hi), np.clip(t.end_s[rows], lo, hi)
    best, category = np.zeros(len(rows)), np.full(len(rows), NO_ID, np.int64)
    idle = index.busy.complement(lo, hi)
    on_host = np.isin(t.kind[rows], (Kind.ANNOTATION, Kind.CPU_OP, Kind.RUNTIME, Kind.PYTHON))
    for number, name in enumerate(CATEGORIES):
        spans = index.categories.get(name)
        if spans is None or name is Category.COMPUTE:
            continue
        inside = np.where(on_host, (spans & idle).within(start, end), 0.0)
        more = inside > best
        best[more], category[more] = inside[more], number
    place = np.minimum(np.searchsorted(index.view.work, rows), len(index.view) - 1)
    work = index.view.work[place] == rows
    kinds = np.where(
        p.communication[place],
        CATEGORIES.index(Category.COMMUNICATION),
        np.where(p.crosses_bus[place], CATEGORIES.index(Category.COPY), CATEGORIES.index(Category.COMPUTE)),
    )
    return best, np.where(work, kinds, category)


def _boxes(
    index: StepIndex,
    events: _Events,
    shown: Shown,
    lo: float,
    category: NDArray[np.int64],
    idle_s: NDArray[np.float64],
) -> tuple[Columns, list[list[str]]]:
    t = index.timeline
    first, longest = shown.longest, events.row[shown.longest]
    alone = shown.count == 1
    operator = behind(index, longest)
    texts, codes = event_facts(index, longest, operator)
    length = t.duration_s[events.row]
    columns: Columns = {
        "version": np.full(len(shown), EVERY),
        "track": events.track[first],
        "depth": events.depth[first],
        "start_s": _over(np.minimum, t.start_s[events.row], shown) - lo,
        "end_s": _over(np.maximum, t.end_s[events.row], shown) - lo,
        "name": t.name[longest].astype(np.int64),
        "operator": np.where(operator >= 0, t.name[np.maximum(operator, 0)], NO_ID).astype(np.int64),
        "account": category[first],
        "work": _works(index, longest),
        "count": shown.count,
        "busy_s": _over(np.add, length, shown),
        "idle_s": _over(np.maximum, idle_s, shown),
        "correlation": np.where(alone, t.correlation[longest], NO_ID),
        "facts": np.where(alone, codes, NO_ID),
    }
    return columns, texts


def _works(index: StepIndex, rows: NDArray[np.intp]) -> NDArray[np.int64]:
    """By event: what sort of device work it is, as a place in the list of sorts; NO_ID for the host's."""
    if not len(index.view):
        return np.full(len(rows), NO_ID, np.int64)
    place = np.minimum(np.searchsorted(index.view.work, rows), len(index.view) - 1)
    sorts = list(Work)
    code = np.full(256, NO_ID, np.int64)
    code[[int(work) for work in sorts]] = np.arange(len(sorts))
    found: NDArray[np.int64] = np.where(index.view.work[place] == rows, code[index.purposes.work[place]], NO_ID)
    return found


def _over(how: np.ufunc, values: NDArray[np.float64], shown: Shown) -> NDArray[np.float64]:
    """One value for each box, from those of its events."""
    if not len(shown):
        return np.empty(0)
    found: NDArray[np.float64] = how.reduceat(values[shown.member], shown.first)
    return found


class _Names:
    """Names that boxes use, each once."""

    def __init__(self, timeline: Timeline) -> None:
        self._all = timeline.names
        self._code: dict[str, int] = {}

    @property
    def words(self) -> list[str]:
        return list(self._code)

    def code(self, word: str) -> int:
        word = word if len(word) <= LONGEST_NAME else word[: LONGEST_NAME - 3] + "..."
        return self._code.setdefault(word, len(self._code))

    def codes(self, names: NDArray[np.int64]) -> NDArray[np.int64]:
        used, which = np.unique(names, return_inverse=True)
        mine = [NO_ID if code == NO_ID else self.code(self._all[code]) for code in used.tolist()]
        return np.array(mine, np.int64)[which] if len(used) else names


def _category_boxes(spans: CategorySpans, version: int, length_s: float, versions: int, names: _Names) -> Columns:
    """The ledger along time. Of too many pieces, neighbours share a box that has the colour of most of its time."""
    start, end, code = spans
    shown = shown_events(
        np.zeros(len(start), np.int64),
        start,
        end,
        code,
        np.zeros(len(start), bool),
        MOST_CATEGORIES // 2,
        MOST_CATEGORIES // 2,
    )
    box = np.repeat(np.arange(len(shown)), shown.count)
    spent = np.zeros((len(shown), len(CATEGORIES)))
    np.add.at(spent, (box, code[shown.member]), (end - start)[shown.member])
    category = spent.argmax(axis=1) if len(shown) else np.empty(0, np.int64)
    name = np.array([names.code(CATEGORIES[a].value) for a in category.tolist()], np.int64)
    begins, ends = _over(np.minimum, start, shown), _over(np.maximum, end, shown)
    nothing = np.full(len(shown), NO_ID, np.int64)
    columns: Columns = {
        "version": np.full(len(shown), version),
        "track": np.full(len(shown), CATEGORY_TRACK),
        "depth": np.zeros(len(shown), np.int64),
        "start_s": begins,
        "end_s": ends,
        "name": name,
        "operator": nothing,
        "account": category,
        "work": nothing,
        "count": shown.count,
        "busy_s": spent.max(axis=1) if len(shown) else begins,
        "idle_s": np.zeros(len(shown)),
        "correlation": nothing,
        "facts": nothing,
    }
    return columns | {f"{end}_s:{n + 1}": columns[f"{end}_s"] for n in range(versions) for end in ("start", "end")}


def _version_rows(index: StepIndex, length_s: float, versions: list[Version]) -> list[dict[str, Any]]:
    recorded = index.timeline.recorded
    clean = recorded is not None and not np.array_equal(recorded.start_s, index.timeline.start_s)
    word = "clean" if clean else "as traced"
    meaning = "replayed without what recording costs" if clean else "the times in the file"
    first = {"word": word, "meaning": meaning, "length_s": length_s}
    return [first, *({"word": v.word, "meaning": v.meaning, "length_s": v.length_s} for v in versions)]


def _path(index: StepIndex, at: int, lo: float, hi: float, tracks: list[Track]) -> dict[str, Any]:
    """The critical path as links on tracks, in order of time; empty where it cannot be told."""
    if not index.view.launched.any():
        return {}
    replays = replays_of(index)
    if at >= replays.steps:
        return {}
    found = critical_path(index.view, replays.graph, replays.order, lo, hi)
    if found is None or len(found.kind) > MOST_LINKS:
        return {}
    t = index.timeline
    lanes: dict[int, int] = {}
    for number, track in enumerate(tracks, CATEGORY_TRACK + 1):
        if track.kind in ("stream", "thread") and len(track.rows):
            lanes[int(t.lane[track.rows[0]])] = number
    on = [lanes.get(int(t.lane[row]), NO_ID) if row >= 0 else NO_ID for row in found.row.tolist()]
    return {
        "kind": found.kind.tolist(),
        "start_s": (found.start_s - lo).tolist(),
        "end_s": (found.end_s - lo).tolist(),
        "track": on,
        "seconds": found.seconds(),
    }
