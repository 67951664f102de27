"""A memory plan as a page: what fills each stage, and the same through one step."""

from __future__ import annotations

import numpy as np

from stallwise.planner.memory_answer import MemoryAnswer, StageMemory
from stallwise.render.answers import Block, Figure, Grid, Text, Verdict, page
from stallwise.render.memory import GIB, to_text, verdict_words
from stallwise.render.pictures._areas import areas
from stallwise.render.pictures._bars import Bar, bars
from stallwise.render.pictures._memory_kinds import in_order, shade_of
from stallwise.render.svg import picture

SHOWN_BYTES = 0.01 * GIB


def to_html(answer: MemoryAnswer) -> str:
    """The whole page."""
    label = f"{answer.model.name}, {answer.layout.label} on {answer.cluster.gpus} x {answer.cluster.gpu.title}"
    blocks: list[Block | None] = [_stages(answer), _through_a_step(answer), _parts(answer), _knobs(answer), _tensors(answer),
              Text("The whole answer", to_text(answer))]  # fmt: skip
    return page(_verdict(answer), blocks, verb="plan memory", subject=label)


def _verdict(answer: MemoryAnswer) -> Verdict:
    worst, card = answer.worst, answer.cluster.gpu
    low, high = answer.interval_bytes
    used = f"{_g(worst.device_bytes)} ({_g(low)} to {_g(high)}, 90% sure)"
    why = f"{used} on the fullest GPU, {worst.moment}; a plan may fill {_g(answer.room_bytes)} of {_g(card.memory_bytes)}."
    fitting = next((k for k in answer.knobs if k.fits), None)
    do = (
        f"{fitting.change} frees {_g(fitting.freed_bytes)}; it costs {fitting.costs}."
        if fitting and not answer.fits
        else ""
    )
    tone = {"fits": "good", "may fit": "unclear"}.get(answer.fit, "bad")
    words = verdict_words(answer)
    return Verdict(f"{answer.model.name} {answer.layout.label}: {words}", why, do, tone, f"{worst.stage} stage")


def _kinds(stage: StageMemory) -> list[str]:
    return in_order(n for n, size in stage.parts.items() if size > SHOWN_BYTES)


def _stages(answer: MemoryAnswer) -> Figure:
    rows = [
        Bar(f"{s.stage} stage", [(shade_of(n), s.parts[n] / GIB, f"{n}: {_g(s.parts[n])}") for n in _kinds(s)],
            behind=_g(s.device_bytes))
        for s in answer.stages
    ]  # fmt: skip
    limit = (answer.cluster.gpu.memory_bytes / GIB, f"the card: {_g(answer.cluster.gpu.memory_bytes)}")
    parts, height = bars(rows, _axis, limit)
    used = in_order({n for s in answer.stages for n in _kinds(s)})
    title = "What fills one GPU at its peak"
    return Figure("stages", title, picture(parts, height, title), "One GPU of each kind of stage.", "",
                  tuple((shade_of(n), n) for n in used))  # fmt: skip


def _through_a_step(answer: MemoryAnswer) -> Figure:
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
    return Figure("course", title, picture(drawn, height, title), caption, "", legend, rows)


def _names(moments: list[str], height: float) -> list[str]:
    from stallwise.render.pictures._areas import LEFT, RIGHT
    from stallwise.render.svg import WIDTH, text

    wide = (WIDTH - LEFT - RIGHT) / len(moments)
    return [text(LEFT + (i + 0.5) * wide, height - 8, when, "axis", "middle") for i, when in enumerate(moments)]


def _parts(answer: MemoryAnswer) -> Grid:
    names = in_order({n for s in answer.stages for n in _kinds(s)})
    rows = [(n, *(_g(s.parts[n]) for s in answer.stages)) for n in names]
    rows.append(("in all", *(_g(s.device_bytes) for s in answer.stages)))
    head = ("at the peak", *(f"{s.stage} stage" for s in answer.stages))
    return Grid("By the byte", head, rows, frozenset(range(1, len(head))))


def _knobs(answer: MemoryAnswer) -> Grid:
    rows = [
        (k.change, _g(k.freed_bytes), _g(k.device_bytes), "fits" if k.fits else "does not fit", k.costs)
        for k in answer.knobs
    ]
    return Grid("What frees memory", ("change", "frees", "leaves", "then it", "costs"), rows, frozenset({1, 2}))


def _tensors(answer: MemoryAnswer) -> Grid:
    rows = [(name, _g(size)) for name, size in sorted(answer.tensors.items(), key=lambda t: -t[1])]
    return Grid("Saved for the backward pass by one microbatch", ("tensor", "a stage"), rows, frozenset({1}))


def _axis(gib: float) -> str:
    return f"{gib:g} GiB"


def _g(size_bytes: float) -> str:
    return f"{size_bytes / GIB:.1f} GiB" if size_bytes >= 0.1 * GIB else f"{size_bytes / GIB:.3g} GiB"
