"""A memory plan: whether it fits, what fills each stage, the same through one step, and what would free it."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np

from stallwise.planner.memory_answer import MemoryAnswer, StageMemory
from stallwise.render.blocks import (
    GIB,
    Column,
    Document,
    Picture,
    Table,
    Verdict,
    Words,
    gib,
    number,
    sentence,
    table,
)
from stallwise.render.blocks import document as filled
from stallwise.render.part_names import part_name
from stallwise.render.pictures._areas import LEFT, RIGHT, areas
from stallwise.render.pictures._bars import Bar, bars
from stallwise.render.pictures._memory_kinds import in_order, shade_of
from stallwise.render.svg import WIDTH, picture, text

SHOWN_BYTES = 0.01 * GIB
TONES = {"fits": "good", "may fit": "unclear"}
MOST_TENSORS = 8  # on the first screen


def document(answer: MemoryAnswer, *, deep: bool = False) -> Document:
    """The verdict, the parts of each stage, what frees memory, the tensors."""
    return filled(
        _verdict(answer),
        _parts(answer),
        _knobs(answer),
        *([_stages(answer), _through_a_step(answer)] if deep else []),
        _tensors(answer),
        verb="plan memory",
        subject=f"{answer.model.name}, {answer.layout.label} on {answer.cluster.gpus} x {answer.cluster.gpu.title}",
    )


def _verdict(answer: MemoryAnswer) -> Verdict:
    worst, (low, high) = answer.worst, answer.interval_bytes
    label = f"{answer.model.name}, {answer.layout.label} on {answer.cluster.gpus} x {answer.cluster.gpu.title}"
    why = (
        gib(worst.device_bytes), " (", gib(low), " to ", gib(high), f", 90% sure) on the fullest GPU, {worst.moment}; a plan "
        "may fill ", gib(answer.room_bytes), f" of the card's {answer.cluster.gpu.memory_bytes / GIB:.0f} GiB.",
    )  # fmt: skip
    fitting = next((k for k in answer.knobs if k.fits), None)
    do = f"Makes it fit: {fitting.change}; it costs {fitting.costs}." if fitting and not answer.fits else ""
    return Verdict(f"{label}: {answer.fit}", why, do, TONES.get(answer.fit, "bad"), f"{worst.stage} stage")


def _parts(answer: MemoryAnswer) -> Table:
    names = in_order({n for s in answer.stages for n in _kinds(s)})
    rows: list[tuple[Words, ...]] = [(part_name(n), *(gib(s.parts[n]) for s in answer.stages)) for n in names]
    rows.append(("in all", *(gib(s.device_bytes) for s in answer.stages)))
    return table("At the peak", (Column("part"), *(number(f"{s.stage} stage") for s in answer.stages)), rows)


def _knobs(answer: MemoryAnswer) -> Table:
    rows = (
        (k.change, gib(k.freed_bytes), gib(k.device_bytes), "fits" if k.fits else "does not fit", k.costs)
        for k in answer.knobs
    )
    head = (Column("change"), number("frees"), number("leaves"), Column("then it", 1), sentence("costs"))
    return table("What frees memory", head, rows)


def _tensors(answer: MemoryAnswer) -> Table:
    rows = ((part_name(name), gib(s, digits=2)) for name, s in sorted(answer.tensors.items(), key=lambda t: -t[1]))
    return table(
        "Saved for the backward pass by one microbatch",
        (Column("tensor"), number("per stage")),
        rows,
        most=MOST_TENSORS,
    )


def _kinds(stage: StageMemory) -> list[str]:
    return in_order(n for n, size in stage.parts.items() if size > SHOWN_BYTES)


def _stages(answer: MemoryAnswer) -> Picture:
    rows = [
        Bar(f"{s.stage} stage", [(shade_of(n), s.parts[n] / GIB, f"{n}: {_g(s.parts[n])}") for n in _kinds(s)],
            behind=_g(s.device_bytes))
        for s in answer.stages
    ]  # fmt: skip
    limit = (answer.cluster.gpu.memory_bytes / GIB, f"the card: {_g(answer.cluster.gpu.memory_bytes)}")
    parts, height = bars(rows, _axis, limit)
    used = in_order({n for s in answer.stages for n in _kinds(s)})
    title = "What fills one GPU at its peak"
    return Picture("stages", title, picture(parts, height, title), "One GPU of each kind of stage.", "",
                  tuple((shade_of(n), n) for n in used))  # fmt: skip


def _through_a_step(answer: MemoryAnswer) -> Picture:
    over_step = answer.worst.course
    kinds = in_order(n for n in over_step[0][1] if any(parts[n] > SHOWN_BYTES for _, parts in over_step))
    layers = [
        (shade_of(n), f"{n}: at most {_g(max(parts[n] for _, parts in over_step))}",
         np.array([*(parts[n] for _, parts in over_step), over_step[0][1][n]]) / GIB)
        for n in kinds
    ]  # fmt: skip
    limit = (answer.cluster.gpu.memory_bytes / GIB, "the card")
    drawn, height = areas(np.arange(len(over_step) + 1.0), layers, _axis, str, limit, steps=True)
    drawn += _names([when for when, _ in over_step], height)
    title = "The same through one step"
    caption = f"The {answer.worst.stage} stage, moment by moment; widths are not to scale."
    rows = (
        ("part", *(when for when, _ in over_step)),
        *((n, *(_g(parts[n]) for _, parts in over_step)) for n in kinds),
    )
    legend = tuple((shade_of(n), n) for n in reversed(kinds))
    return Picture("over-step", title, picture(drawn, height, title), caption, "", legend, rows)


def _names(moments: list[str], height: float) -> list[str]:
    wide = (WIDTH - LEFT - RIGHT) / len(moments)
    return [text(LEFT + (i + 0.5) * wide, height - 8, when, "axis", "middle") for i, when in enumerate(moments)]


def _axis(gib: float) -> str:
    return f"{gib:g} GiB"


def _g(size_bytes: float) -> str:
    return f"{size_bytes / GIB:.1f} GiB" if size_bytes >= 0.1 * GIB else f"{size_bytes / GIB:.3g} GiB"


def data(answer: MemoryAnswer) -> dict[str, Any]:
    """The JSON contract."""
    worst = answer.worst.device_bytes
    return {
        "schema": "stallwise.plan.memory/1",
        "model": answer.model.name,
        "layout": {**asdict(answer.layout), "label": answer.layout.label},
        "fits": answer.fits,
        "room_bytes": answer.room_bytes,
        "peak_bytes": worst,
        "fit": answer.fit,
        "low_bytes": answer.interval_bytes[0],
        "high_bytes": answer.interval_bytes[1],
        "stages": [asdict(s) for s in answer.stages],
        "activation_tensors": answer.tensors,
        "knobs": [asdict(k) for k in answer.knobs],
    }
