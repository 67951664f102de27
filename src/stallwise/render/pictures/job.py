"""A job of many workers: each worker in each step, each microbatch on each stage, and one step beside the ideal one."""

from __future__ import annotations

import numpy as np

from stallwise.doctor.findings.diagnosis import Diagnosis
from stallwise.evidence.fact import Table
from stallwise.evidence.operations import COMMUNICATION, UNKNOWN, Work
from stallwise.render.blocks import Picture, Tab
from stallwise.render.phrases import place
from stallwise.render.pictures._heat import LEFT, TOP, heat
from stallwise.render.svg import WIDTH, box, line, picture, text
from stallwise.units import Unit, show

PLACE = 31
TAB = Tab.TIMELINE
MOST_LISTED = 64
LANE = 18.0
COSTS_LEFT, COST_ROW = 260.0, 24.0
_CLASS = {
    Work.FORWARD: "m1", Work.BACKWARD: "m2", Work.WEIGHT_GRAD: "m3", Work.OPTIMIZER: "m7", Work.COMPUTE: "m1",
    Work.INPUT: "m6", Work.CHECKPOINT: "m9", Work.GARBAGE: "m5",
}  # fmt: skip
_TOGETHER = "; where all stages of a replica have the same colour, its sequences are long"
_WORD = {w: w.name.lower().replace("_", " ") for w in _CLASS}
LEAST_COST = 0.01  # of the step: sets that cost less are not drawn
MOST_SETS = 6  # of one sort
_SORTS = (
    ("by_worker", ""),
    ("by_host", "host "),
    ("by_stage", "stage "),
    ("by_microbatch", "microbatch "),
    ("by_kind", ""),
)


def draw(diagnosis: Diagnosis) -> list[Picture]:
    """What the operation table allows."""
    found: list[Picture] = []
    for kind, drawn in (
        ("job.attribution", _costs), ("job.workers", _workers), ("job.microbatches", _microbatches), ("job.steps", _one_step),
    ):  # fmt: skip
        for table in diagnosis.evidence.table(kind)[:1]:
            figure = drawn(table)
            found += [figure] if figure else []
    return found


def _costs(table: Table) -> Picture | None:
    """What each set of operations adds to the ideal step, and what the real one takes without it."""
    step_s, ideal_s = table.meta["step_s"], table.meta["ideal_step_s"]
    sets = []
    for sort, before in _SORTS:
        rows = [r for r in table.meta[sort] if max(r["removed_s"], r["added_s"]) >= LEAST_COST * step_s]
        rows = sorted(rows, key=lambda r: -r["removed_s"]) if len(table.meta[sort]) > 1 or sort == "by_worker" else []
        sets += [(before + r["name"], max(r["removed_s"], 0.0), max(r["added_s"], 0.0)) for r in rows[:MOST_SETS]]
    if not sets:
        return None
    wide = (WIDTH - COSTS_LEFT - 80) / max(max(row[1:]) for row in sets)
    parts = []
    for at, (name, removed_s, added_s) in enumerate(sets):
        y = 4 + at * COST_ROW
        parts.append(text(COSTS_LEFT - 8, y + 12, name, "t", "end"))
        for below, (kind, value, word) in enumerate(
            (("m1", removed_s, "saved without it"), ("m8", added_s, "added by it"))
        ):
            title = f"{name}: {show(value, Unit.SECOND)} {word}"
            parts.append(box(COSTS_LEFT, y + 9 * below, value * wide, 8.0, kind, title))
        longer = max(removed_s, added_s) * wide
        parts.append(text(COSTS_LEFT + longer + 6, y + 12, show(removed_s, Unit.SECOND), "axis"))
    title = f"What each costs: the step takes {show(step_s, Unit.SECOND)}, {show(ideal_s, Unit.SECOND)} if all took the mean"
    rows = [("", "removed from the step", "added to the ideal step")]
    rows += [(name, show(one, Unit.SECOND), show(two, Unit.SECOND)) for name, one, two in sets]
    return Picture(
        "job-costs", title, picture(parts, 8 + len(sets) * COST_ROW, title),
        "Each set by itself: what the step saves if it takes the mean of its kind (in figures), and what it adds to the ideal one.",
        place(table.source), (("m1", "saved without it"), ("m8", "added by it alone")), tuple(rows),
    )  # fmt: skip


def _workers(table: Table) -> Picture | None:
    c = table.columns
    workers = sorted(set(zip(c["stage"].tolist(), c["replica"].tolist(), strict=True)))
    steps = np.unique(c["step"])
    row = {w: i for i, w in enumerate(workers)}
    grid = np.full((len(workers), len(steps)), np.nan)
    at = [row[w] for w in zip(c["stage"].tolist(), c["replica"].tolist(), strict=True)]
    grid[at, np.searchsorted(steps, c["step"])] = c["beyond_s"]
    many = len({s for s, _ in workers}) > 1
    names = _names(workers, table.meta["members"], many=many)
    svg = heat(grid, names, [str(s) for s in steps.tolist()], "step", "beyond its peers")
    means = np.nanmean(np.where(np.isfinite(grid), grid, 0.0), axis=1)
    order = [i for i in np.argsort(-means, kind="stable")[:MOST_LISTED].tolist() if means[i] > 0.0]
    rows = [
        ("worker", "mean a step beyond its peers"),
        *((names[i], show(float(means[i]), Unit.SECOND)) for i in order),
    ]
    return Picture(
        "workers", f"{len(workers)} workers, step by step", svg,
        "Seconds that a worker computed or stood still beyond the quicker half of its peers. A row in full colour is a slow "
        f"worker, single cells are pauses{_TOGETHER if many else ''}.",
        place(table.source), (), tuple(rows),
    )  # fmt: skip


def _names(workers: list[tuple[int, int]], members: dict[tuple[int, int], tuple[int, str]], *, many: bool) -> list[str]:
    """By rank and host where they are known."""
    found, hosts = [], len({host for _, host in members.values() if host}) > 1
    for stage, replica in workers:
        rank, host = members.get((stage, replica), (UNKNOWN, ""))
        place = f"stage {stage}" if many else ""
        name = f"DP rank {replica}" if rank < 0 and many else f"rank {replica if rank < 0 else rank}"
        found.append(", ".join(w for w in (name, place, host if hosts else "") if w))
    return found


def _microbatches(table: Table) -> Picture | None:
    c = table.columns
    stages, numbers = np.unique(c["stage"]), np.unique(c["microbatch"])
    grid = np.full((len(stages), len(numbers)), np.nan)
    grid[np.searchsorted(stages, c["stage"]), np.searchsorted(numbers, c["microbatch"])] = c["mean_s"]
    least = np.nanmin(grid)
    names, titles = [f"stage {s}" for s in stages.tolist()], [str(n) for n in numbers.tolist()]
    svg = heat(grid - least, names, titles, "microbatch", "beyond the shortest", shown=grid)
    head = ("stage", "microbatch", "mean", "deviation")
    rows = [
        (str(s), str(m), show(float(a), Unit.SECOND), show(float(b), Unit.SECOND))
        for s, m, a, b in zip(c["stage"], c["microbatch"], c["mean_s"], c["deviation_s"], strict=True)
    ][:MOST_LISTED]
    return Picture(
        "microbatches", "Microbatches on each stage", svg,
        "Mean seconds of forward and backward of each microbatch, beyond the shortest. A row in full colour is a long stage.",
        place(table.source), (), (head, *rows),
    )  # fmt: skip


def _legend(works: set[Work]) -> tuple[tuple[str, str], ...]:
    """The colours that occur."""
    found = {_CLASS.get(w, "m4" if w in COMMUNICATION else "m10"): _WORD.get(w, "other") for w in sorted(works)}
    return tuple((kind, "communication" if kind == "m4" else word) for kind, word in found.items())


def _one_step(table: Table) -> Picture | None:
    c = table.columns
    stages = np.unique(c["stage"]).tolist()
    whole = float((c["begin_s"] + c["length_s"]).max())
    if whole <= 0:
        return None
    scale = (WIDTH - LEFT - 8) / whole
    parts: list[str] = []
    ends = []
    for which, word in enumerate(("as it ran", "ideal")):
        top = TOP + which * (len(stages) * LANE + 34)
        mine = c["ideal"] == which
        end = float((c["begin_s"] + c["length_s"])[mine].max())
        ends.append(end)
        parts.append(text(LEFT, top - 8, f"{word}: {show(end, Unit.SECOND)}", "t"))
        for at, stage in enumerate(stages):
            name = f"stage {stage}" if len(stages) > 1 else f"rank {table.meta['replica']}"
            parts.append(text(LEFT - 8, top + at * LANE + 12, name, "axis", "end"))
        for i in np.flatnonzero(mine & (c["length_s"] > 0)).tolist():
            work = Work(int(c["work"][i]))
            y, x, wide = (
                top + stages.index(int(c["stage"][i])) * LANE,
                LEFT + c["begin_s"][i] * scale,
                c["length_s"][i] * scale,
            )
            word = work.name.lower().replace("_", " ")
            title = f"{word} {c['microbatch'][i]}: {show(float(c['length_s'][i]), Unit.SECOND)}"
            kind, thin = ("m4", 8.0) if work in COMMUNICATION else (_CLASS.get(work, "m10"), 0.0)
            parts.append(box(x, y + thin / 2, wide, LANE - 3 - thin, kind, title))
        parts.append(line(LEFT + end * scale, top - 2, LEFT + end * scale, top + len(stages) * LANE, "after"))
    height = TOP + 2 * (len(stages) * LANE + 34)
    who = "DP rank" if len(stages) > 1 else "rank"
    title = f"Step {table.meta['step']} of {who} {table.meta['replica']}, and the same step if all took the mean"
    legend = _legend({Work(w) for w in c["work"][c["length_s"] > 0].tolist()})
    rows = (("", "step"), ("as it ran", show(ends[0], Unit.SECOND)), ("ideal", show(ends[1], Unit.SECOND)))
    caption = "Ideal: every operation takes the mean of its kind over all workers and steps."
    return Picture("job-step", title, picture(parts, height, title), caption, place(table.source), legend, rows)
