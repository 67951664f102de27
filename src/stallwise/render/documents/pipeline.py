"""A pipeline schedule: its bubble, what it is made of, its picture, and what would shrink it."""

from __future__ import annotations

from typing import Any

from markupsafe import Markup

from stallwise.render.blocks import (
    Column,
    Depth,
    Document,
    Facts,
    Number,
    Picture,
    Verdict,
    Words,
    number,
    seconds,
    share,
    steps,
    table,
)
from stallwise.render.blocks import document as filled
from stallwise.render.pipeline_svg import to_svg
from stallwise.units import Unit

WIDTH = 110
MOST_ALTERNATIVES = 8
Answer = dict[str, Any]
INSTEAD = (Column("schedule"), number("chunks", 1), number("step"), number("bubble"), number("microbatches held", 2))


def document(answer: Answer, *, deep: bool = False) -> Document:
    """The answer of `plan pipeline`."""
    effects = ((e["name"], share(e["step_share"], 1), _points(e["added_share"])) for e in answer["effects"])
    instead = (
        (
            row["schedule"], count_of(row["chunks"]), Number(row["step_ratio"], Unit.RATIO, f"x{row['step_ratio']:.3f}"),
            share(row["bubble_step_share"], 1), f"{row['held_microbatches']:.1f}",
        )
        for row in answer["alternatives"][:MOST_ALTERNATIVES]
    )  # fmt: skip
    return filled(
        _verdict(answer),
        Facts(_measured(answer), label="seen"),
        _picture(answer, deep=deep),
        Facts(tuple((name, share(value, 1)) for name, value in answer["formulas"].items()), title="Formulas"),
        table("What the bubble is made of", (Column("effect"), number("of the step"), number("added")), effects),
        steps("Split of the layers", [_split(answer)], label="split"),
        table(
            "Instead",
            (Column("schedule"), number("chunks", 1), number("step"), number("bubble"), number("microbatches held", 2)),
            instead,
        ),
        verb="plan pipeline",
        subject=f"{answer['schedule']}, {answer['devices']} stages",
    )


def count_of(chunks: int) -> str:
    """More than one is worth a figure."""
    return f"{chunks}" if chunks > 1 else ""


def _verdict(answer: Answer) -> Verdict:
    what: Words = (
        f"{answer['schedule']}: bubble ", share(answer["bubble_step_share"], 1), " of the step = ",
        share(answer["bubble_useful_ratio"], 1), " of useful time",
    )  # fmt: skip
    why: Words = (
        f"{answer['devices']} stages x {answer['chunks']} chunks, {answer['microbatches']} microbatches, "
        f"{answer['layers']} layers; step ", seconds(answer["step_s"]),
        f"; at most {max(answer['held_microbatches']):.1f} microbatches of activations held on a device.",
    )  # fmt: skip
    return Verdict(what, why)


def _measured(answer: Answer) -> tuple[tuple[str, Words], ...]:
    """The measured bubble, and how large each effect would have to be to explain the rest alone."""
    if answer["measured_share"] is None:
        return ()
    rows: list[tuple[str, Words]] = [
        ("measured", (
            share(answer["measured_share"], 1), " of the step = ", share(answer["measured_useful_ratio"], 1),
            " of useful time; ", _points(answer["unexplained_share"]), " not explained by what is known",
        ))
    ]  # fmt: skip
    for need in answer["needed"] if answer["unexplained_share"] > 0 else ():
        name = f"{need['name']} alone"
        if need["value"] is None:
            rows.append((name, "no size of it would do"))
        elif need["name"] == "transfers":
            rows.append((name, (seconds(need["value"]), " more per message")))
        else:
            rows.append((name, f"{need['value']:.3g} {need['meaning']}"))
    return tuple(rows)


def _points(value: float) -> Number:
    return Number(value, Unit.SHARE, f"{value * 100:+.1f} points")


def _split(answer: Answer) -> Words:
    if answer["best_split"] == answer["split"]:
        return "the layers already lie as well as they can"
    before, after = (" ".join(map(str, answer[key])) for key in ("split", "best_split"))
    ratio = Number(answer["best_split_step_ratio"], Unit.RATIO, f"x{answer['best_split_step_ratio']:.3f}")
    return (f"{before} -> {after}: step ", ratio, ", bubble ", share(answer["best_split_share"], 1))


def _picture(answer: Answer, *, deep: bool) -> Picture:
    title = f"{answer['schedule']}, one step"
    svg = Markup(to_svg(answer["picture"], answer["step_s"], title=title)) if deep else Markup("<svg/>")
    return Picture("schedule", title, svg, drawn=tuple(_lanes(answer["picture"], answer["step_s"])), depth=Depth.FIRST)


def _lanes(devices: list[list[dict[str, Any]]], step_s: float) -> list[str]:
    """One line per device: digits are forwards, a to z backwards (by microbatch), w weight gradients, dots idle."""
    lines = []
    for device, boxes in enumerate(devices):
        row = ["."] * WIDTH
        for box in boxes:
            first = int(box["start_s"] / step_s * WIDTH) if step_s else 0
            last = max(first + 1, int(box["end_s"] / step_s * WIDTH)) if step_s else 1
            for place in range(first, min(last, WIDTH)):
                row[place] = _letter(box["passes"])
        lines.append(f"{device:>4} {''.join(row)}")
    return [*lines, "     0-9 forward, a-z backward (by microbatch), w weight gradient, # both at once, . idle"]


def _letter(passes: list[dict[str, Any]]) -> str:
    if len(passes) > 1:
        return "#"
    kind, microbatch = passes[0]["kind"], passes[0]["microbatch"]
    if kind == "F":
        return str(microbatch % 10)
    return "w" if kind == "W" else "abcdefghijklmnopqrstuvxyz"[microbatch % 25]
