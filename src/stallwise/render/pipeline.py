"""The answer of `stallwise plan pipeline` for a terminal, with a picture of the schedule."""

from __future__ import annotations

from typing import Any

from stallwise.units import Unit, show

WIDTH = 110
LONGEST_LIST = 8


def to_text(answer: dict[str, Any]) -> str:
    """The bubble by both names, what it is made of, the picture, and what would shrink it."""
    lines = [
        f"{answer['schedule']}, {answer['devices']} stages x {answer['chunks']} chunks, {answer['microbatches']} "
        f"microbatches, {answer['layers']} layers: bubble {_p(answer['bubble_step_share'])} of the step = "
        f"{_p(answer['bubble_useful_ratio'])} of useful time",
        f"step {show(answer['step_s'], Unit.SECOND)}; at most {max(answer['held_microbatches']):.1f} microbatches of "
        "activations held on a device",
        "",
        *_picture(answer["picture"], answer["step_s"]),
        "",
    ]
    lines += [f"formula    {name}: {_p(value)}" for name, value in answer["formulas"].items()]
    lines += [
        f"made of    {effect['name']}: {_p(effect['step_share'])} of the step "
        f"({effect['added_share'] * 100:+.1f} points)"
        for effect in answer["effects"]
    ]
    lines += _measured(answer)
    lines += _split(answer)
    for row in answer["alternatives"][:LONGEST_LIST]:
        chunks = f" x{row['chunks']}" if row["chunks"] > 1 else ""
        lines.append(
            f"instead    {row['schedule'] + chunks:20} step x{row['step_ratio']:.3f}, bubble "
            f"{_p(row['bubble_step_share'])}, holds {row['held_microbatches']:.1f}"
        )
    return "\n".join(lines)


def _measured(answer: dict[str, Any]) -> list[str]:
    if answer["measured_share"] is None:
        return []
    lines = [
        f"measured   {_p(answer['measured_share'])} of the step = {_p(answer['measured_useful_ratio'])} of useful "
        "time; "
        f"{answer['unexplained_share'] * 100:+.1f} points not explained by what is known"
    ]
    if answer["unexplained_share"] <= 0:
        return lines
    for need in answer["needed"]:
        if need["value"] is None:
            lines.append(f"  alone    {need['name']}: no size of it would do")
        elif need["name"] == "transfers":
            lines.append(f"  alone    {need['name']}: {show(need['value'], Unit.SECOND)} more per message")
        else:
            lines.append(f"  alone    {need['name']}: {need['value']:.3g} {need['meaning']}")
    return lines


def _split(answer: dict[str, Any]) -> list[str]:
    if answer["best_split"] == answer["split"]:
        return ["split      the layers already lie as well as they can"]
    return [
        f"split      {_join(answer['split'])} -> {_join(answer['best_split'])}: step "
        f"x{answer['best_split_step_ratio']:.3f}, bubble {_p(answer['best_split_share'])}"
    ]


def _join(split: list[int]) -> str:
    return " ".join(map(str, split))


def _picture(devices: list[list[dict[str, Any]]], step_s: float) -> list[str]:
    """One line per device: digits are forwards, letters backwards (by microbatch), w weight gradients, dots idle."""
    lines = []
    for number, boxes in enumerate(devices):
        row = ["."] * WIDTH
        for box in boxes:
            first = int(box["start_s"] / step_s * WIDTH) if step_s else 0
            last = max(first + 1, int(box["end_s"] / step_s * WIDTH)) if step_s else 1
            for place in range(first, min(last, WIDTH)):
                row[place] = _letter(box["passes"])
        lines.append(f"{number:>4} {''.join(row)}")
    return [*lines, "     0-9 forward, a-z backward (by microbatch), w weight gradient, # both at once, . idle"]


def _letter(passes: list[dict[str, Any]]) -> str:
    if len(passes) > 1:
        return "#"
    kind, microbatch = passes[0]["kind"], passes[0]["microbatch"]
    if kind == "F":
        return str(microbatch % 10)
    return "w" if kind == "W" else "abcdefghijklmnopqrstuvxyz"[microbatch % 25]


def _p(value: float) -> str:
    return f"{value:.1%}"
