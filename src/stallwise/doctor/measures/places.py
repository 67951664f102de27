"""Names for the host's waits: which range waits for input, and what surrounds a silence."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from stallwise.doctor.measures._idle import Idle
from stallwise.doctor.measures._operators import OperatorTree
from stallwise.doctor.measures._report import step_fact
from stallwise.doctor.measures._spans import Spans
from stallwise.doctor.measures._step_index import StepIndex, step_index
from stallwise.doctor.measures._vocabulary import Host, names_a_step, range_meaning
from stallwise.evidence.catalog import step as catalog
from stallwise.evidence.evidence import Item
from stallwise.evidence.quantity import Quantity
from stallwise.evidence.timeline import Kind, Timeline

LONGEST = 20  # the longest silences tell enough
SAMPLES = 200  # moments of silence that are looked at
MOST_OF = 0.6  # of the silence that any one frame holds
REASONS = {
    Host.GC: "garbage collection",
    Host.LOADER: "the loader",
    Host.CHECKPOINT: "saving a checkpoint",
    Host.COMPILE: "compiling",
    Host.EVALUATION: "evaluation",
}


def from_timeline(timeline: Timeline) -> Iterator[Item]:
    """Facts that name things."""
    index = step_index(timeline)
    if not len(index.view):
        return
    yield from _loader(index)
    yield from _silences(index)
    for reason, quantity in ((Idle.PLAN, catalog.PLAN_OPERATOR), (Idle.CPU_WORK, catalog.CPU_OPERATOR)):
        yield from _operators(index, reason, quantity)


def _loader(index: StepIndex) -> Iterator[Item]:
    view, t = index.view, index.timeline
    rows = t.rows(Kind.ANNOTATION, Kind.CPU_OP, Kind.PYTHON)
    rows = rows[((view.range_flags[t.name[rows]] & int(Host.LOADER)) != 0) & view.working_lanes[t.lane[rows]]]
    lo, hi = index.windows.host[0], index.windows.host[-1]
    rows = rows[(t.start_s[rows] >= lo) & (t.start_s[rows] < hi)]
    if not len(rows):
        return
    spans = Spans.of(t.start_s[rows], t.end_s[rows])
    yield step_fact(index, catalog.LOADER_TIME, spans.total_s / index.steps)
    # The framework's own name tells more (which iterator), as long as the time is inside it.
    seconds = np.bincount(t.name[rows], weights=t.duration_s[rows], minlength=len(t.names))
    best = int(np.argmax(seconds))
    framework = np.array(["DataLoader" in n and k > 0.8 * seconds[best] for n, k in zip(t.names, seconds, strict=True)])
    name = t.names[int(np.argmax(np.where(framework, seconds, 0)))] if framework.any() else t.names[best]
    yield step_fact(index, catalog.LOADER_NAME, name)


def _silences(index: StepIndex) -> Iterator[Item]:
    silent = index.idle.get(Idle.SILENT)
    if not len(silent):
        return
    t, view = index.timeline, index.view
    rows = t.rows(Kind.ANNOTATION, Kind.PYTHON)
    step = np.array([names_a_step(n) for n in t.names])
    rows = rows[view.working_lanes[t.lane[rows]] & ~step[t.name[rows]]]
    tree = OperatorTree.of(t, rows)
    weight = _around(index, tree, silent)
    if not weight:
        return
    place = max(weight, key=weight.__getitem__)
    yield step_fact(index, catalog.SILENT_PLACE, readable(place))
    meaning = range_meaning(place)
    if meaning in REASONS:
        yield step_fact(index, catalog.SILENT_REASON, REASONS[meaning])


def _around(index: StepIndex, tree: OperatorTree, silent: Spans) -> dict[str, float]:
    """Seconds of silence by the deepest range or frame that holds most of them.

    A function that works in many small calls is the answer, not the call that happened to run at one moment; the program's
    outermost frames hold everything and say nothing.
    """
    t, view = index.timeline, index.view
    before = np.concatenate(([0.0], np.cumsum(silent.length_s)))
    at = (np.arange(SAMPLES) + 0.5) / SAMPLES * before[-1]
    piece = np.searchsorted(before, at, side="right") - 1
    moments = silent.start[piece] + at - before[piece]
    each = before[-1] / SAMPLES
    held: dict[str, float] = {}
    depth: dict[str, int] = {}
    for lane in np.flatnonzero(view.working_lanes).tolist():
        for place in tree.at(np.full(len(moments), lane, np.int32), moments).tolist():
            chain: list[str] = []
            while place >= 0:
                chain.append(t.names[t.name[tree.row[place]]])
                place = int(tree.parent[place])
            for level, name in enumerate(dict.fromkeys(reversed(chain))):
                held[name] = held.get(name, 0.0) + each
                depth[name] = max(depth.get(name, 0), level)
    named = {n: s for n, s in held.items() if not n.startswith("<built-in")} or held
    most = max(named.values(), default=0.0)
    deep = {n: depth[n] for n, s in named.items() if s >= MOST_OF * most}
    return {n: named[n] for n in deep if deep[n] == max(deep.values())}


FRAME = re.compile(r"^(?:.*[/\\])?([^/\\]+\.py)\((\d+)\): (.+)$")


def readable(frame: str) -> str:
    """A frame as file, line and function; other names as they are."""
    found = FRAME.match(frame)
    return f"{found[1]}:{found[2]} {found[3]}" if found else frame


def _operators(index: StepIndex, reason: Idle, quantity: Quantity) -> Iterator[Item]:
    spans = index.idle.get(reason)
    if not len(spans):
        return
    t, view = index.timeline, index.view
    top = np.argsort(-spans.length_s)[:LONGEST]
    middle = (spans.start[top] + spans.end[top]) / 2
    weight: dict[str, float] = {}
    for lane in np.flatnonzero(view.working_lanes).tolist():
        for at, seconds in zip(
            view.tree.at(np.full(len(middle), lane, np.int32), middle).tolist(),
            spans.length_s[top].tolist(),
            strict=True,
        ):
            if at >= 0:
                name = t.names[t.name[view.tree.row[at]]]
                weight[name] = weight.get(name, 0.0) + seconds
    if weight:
        yield step_fact(index, quantity, max(weight, key=weight.__getitem__))
