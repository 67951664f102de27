"""A job of many workers: each worker in each step, each microbatch on each stage, and one step beside the ideal one."""

from __future__ import annotations

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from stallwise.doctor.findings.diagnosis import Diagnosis
from stallwise.evidence.fact import Table
from stallwise.evidence.operations import COMMUNICATION, Work
from stallwise.render.blocks import Picture, Tab
from stallwise.render.phrases import place
from stallwise.render.svg import WIDTH, box, line, picture, text
from stallwise.units import Unit, show

PLACE = 31
TAB = Tab.TIMELINE
Floats = NDArray[np.float64]
LEFT, TOP = 170.0, 26.0
MOST_ROWS, MOST_COLUMNS = 64, 120  # beyond, neighbours share a cell, which shows the worst of them
MOST_LISTED = 64
FAINTEST = 0.06
SHADES, KEY = 8, 26.0  # of the key of colours
LINE = 16.0  # names of rows closer than this would touch
LANE = 18.0
_CLASS = {Work.FORWARD: "m1", Work.BACKWARD: "m2", Work.WEIGHT_GRAD: "m3", Work.OPTIMIZER: "m7", Work.COMPUTE: "m1"}
_TOGETHER = "; where all stages of a replica have the same colour, its sequences are long"
_WORD = {w: w.name.lower().replace("_", " ") for w in _CLASS}


def draw(diagnosis: Diagnosis) -> list[Picture]:
    """What the operation table allows."""
    found: list[Picture] = []
    for kind, drawn in (("job.workers", _workers), ("job.microbatches", _microbatches), ("job.steps", _one_step)):
        for table in diagnosis.evidence.table(kind)[:1]:
            figure = drawn(table)
            found += [figure] if figure else []
    return found


def _workers(table: Table) -> Picture | None:
    c = table.columns
    workers = sorted(set(zip(c["stage"].tolist(), c["replica"].tolist(), strict=True)))
    steps = np.unique(c["step"])
    row = {w: i for i, w in enumerate(workers)}
    grid = np.full((len(workers), len(steps)), np.nan)
    at = [row[w] for w in zip(c["stage"].tolist(), c["replica"].tolist(), strict=True)]
    grid[at, np.searchsorted(steps, c["step"])] = c["beyond_s"]
    many = len({s for s, _ in workers}) > 1
    names = [f"stage {s}, replica {r}" if many else f"rank {r}" for s, r in workers]
    svg = _heat(grid, names, [str(s) for s in steps.tolist()], "step", "beyond its peers")
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


def _microbatches(table: Table) -> Picture | None:
    c = table.columns
    stages, numbers = np.unique(c["stage"]), np.unique(c["microbatch"])
    grid = np.full((len(stages), len(numbers)), np.nan)
    grid[np.searchsorted(stages, c["stage"]), np.searchsorted(numbers, c["microbatch"])] = c["mean_s"]
    least = np.nanmin(grid)
    names, titles = [f"stage {s}" for s in stages.tolist()], [str(n) for n in numbers.tolist()]
    svg = _heat(grid - least, names, titles, "microbatch", "beyond the shortest", grid)
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


def _heat(
    values: Floats, names: list[str], titles: list[str], axis: str, what: str, shown: Floats | None = None
) -> Markup:
    """Rows by columns; a cell of several shows the worst of them."""
    down, across = -(-len(names) // MOST_ROWS), -(-len(titles) // MOST_COLUMNS)
    rows, columns = range(0, len(names), down), range(0, len(titles), across)
    width, height = (WIDTH - LEFT - 8) / len(columns), max(6.0, min(22.0, 420 / len(rows)))
    most = float(np.nanmax(values)) if np.isfinite(values).any() else 0.0
    parts = [text(LEFT - 8, TOP - 8, axis, "axis", "end")]
    for j, column in enumerate(columns):
        if j % max(1, len(columns) // 12) == 0:
            parts.append(text(LEFT + (j + 0.5) * width, TOP - 8, titles[column], "axis", "middle"))
    parts += _row_names(values, names, list(rows), height)
    for i, row in enumerate(rows):
        y = TOP + i * height
        for j, column in enumerate(columns):
            part = values[row : row + down, column : column + across]
            if not np.isfinite(part).any():
                continue
            worst = np.unravel_index(int(np.nanargmax(part)), part.shape)
            seconds = float(part[worst])
            here = row + int(worst[0]), column + int(worst[1])
            value = "" if shown is None else f"{show(float(shown[here]), Unit.SECOND)}, "
            title = f"{names[here[0]]}, {axis} {titles[here[1]]}: {value}{show(max(seconds, 0.0), Unit.SECOND)} {what}"
            parts.append(box(LEFT + j * width, y, width - 0.4, height - 0.6, "a-queue", title, _shade(seconds, most)))
    bottom = TOP + len(rows) * height
    return picture(parts + _key(bottom, most, what), bottom + 34, f"Heat map of {len(names)} by {len(titles)}, {what}")


def _shade(seconds: float, most: float) -> str:
    return f' fill-opacity="{max(FAINTEST, seconds / most if most > 0 else 0.0):.2f}"'


def _row_names(values: Floats, names: list[str], rows: list[int], height: float) -> list[str]:
    """Names of some rows, and of the darkest."""
    step, down = max(1, len(rows) // 16), rows[1] - rows[0] if len(rows) > 1 else 1
    known = np.where(np.isfinite(values), values, 0.0).mean(axis=1)
    darkest = int(np.argmax(known))
    found = []
    for i, row in enumerate(rows):
        here = row <= darkest < row + down
        near = abs(i - darkest // down) * height < LINE
        if here or (i % step == 0 and not near):
            found.append(
                text(
                    LEFT - 8, TOP + (i + 0.75) * height, names[darkest if here else row], "t" if here else "axis", "end"
                )
            )
    return found


def _key(top: float, most: float, what: str) -> list[str]:
    """How dark what is."""
    parts = [text(LEFT - 8, top + 22, "0 s", "axis", "end")]
    parts += [
        box(LEFT + i * KEY, top + 12, KEY - 0.4, 12.0, "a-queue", "", _shade(most * i / (SHADES - 1), most))
        for i in range(SHADES)
    ]
    return [*parts, text(LEFT + SHADES * KEY + 6, top + 22, f"{show(most, Unit.SECOND)} {what}", "axis")]


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
    who = "replica" if len(stages) > 1 else "rank"
    title = f"Step {table.meta['step']} of {who} {table.meta['replica']}, and the same step if all took the mean"
    legend = _legend({Work(w) for w in c["work"][c["length_s"] > 0].tolist()})
    rows = (("", "step"), ("as it ran", show(ends[0], Unit.SECOND)), ("ideal", show(ends[1], Unit.SECOND)))
    caption = "Ideal: every operation takes the mean of its kind over all workers and steps."
    return Picture("job-step", title, picture(parts, height, title), caption, place(table.source), legend, rows)
