"""What a step takes after each change, alone and together."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from stallwise.doctor.findings.finding import Gain
from stallwise.doctor.findings.whatif import Tried, WhatIf
from stallwise.render.blocks import (
    Column,
    Document,
    Facts,
    Part,
    Picture,
    Verdict,
    Words,
    joined,
    number,
    seconds,
    seconds_range,
    sentence,
    steps,
    table,
)
from stallwise.render.blocks import document as filled
from stallwise.render.phrases import saved
from stallwise.render.pictures._bars import Bar, bars
from stallwise.render.svg import picture
from stallwise.units import Unit, show

NOTICED = 0.005  # of the step; less is shown as nothing


def document(answer: WhatIf, *, deep: bool = False) -> Document:
    """The step as it is, then each change, best first."""
    tried = [*answer.alone, *([answer.together] if answer.together else [])]
    order = ", then ".join(answer.order) if len(answer.order) > 1 else ""
    return filled(
        _verdict(answer),
        table(
            "Each change alone, and all together",
            (Column("change"), Column("saves"), number("leaves"), sentence("what it does", 1)),
            ((_name(t), _saves(t, answer), seconds(t.step_s), t.meaning) for t in tried),
        ),
        _picture(answer, tried) if deep else None,
        steps("In this order, each beside those before it", [order], label="order"),
        Facts(tuple(answer.nothing.items()), title="Not in this trace"),
        steps("Remarks", answer.remarks, label="note"),
        verb="whatif",
        subject=answer.source,
        inputs=(answer.source,),
    )


def data(answer: WhatIf) -> dict[str, Any]:
    """The JSON contract."""
    return asdict(answer)


def _verdict(answer: WhatIf) -> Verdict:
    steps_of = f"{answer.steps} {answer.unit}{'' if answer.steps == 1 else 's'}"
    basis = (
        f"{steps_of} of {answer.source}{f', the first of {answer.ranks} traces' if answer.ranks > 1 else ''}, replayed"
    )
    now: tuple[Part, ...] = (f"A {answer.unit} takes ", *_step(answer))
    if not answer.alone or answer.alone[0].step_s >= answer.clean_step_s:
        return Verdict((*now, "; nothing that can be replayed saves time here"), "", "", "unclear", basis)
    best = answer.alone[0]
    return Verdict((*now, "; ", seconds(best.step_s), f" with {best.changes[0]}"), "", "", "good", basis)


def _step(answer: WhatIf) -> tuple[Part, ...]:
    """The step, how far it may lie off, and the traced one where it differs; or why the profiler is still in it."""
    clean, low, high = answer.clean_step_s, answer.clean_low_s, answer.clean_high_s
    if answer.as_traced:
        return (seconds(clean), f" as traced ({answer.as_traced})")
    ends: tuple[Part, ...] = (" (", seconds_range(low, high), ")") if low < high else ()
    if show(answer.traced_step_s, Unit.SECOND) == show(clean, Unit.SECOND):
        return (seconds(clean), *ends)
    return (seconds(clean), *ends, " without the profiler, ", seconds(answer.traced_step_s), " while traced")


def _saves(tried: Tried, answer: WhatIf) -> Words:
    """What a change saves, or costs."""
    if abs(answer.clean_step_s - tried.step_s) < NOTICED * answer.clean_step_s:
        return "nothing to notice"
    if tried.step_s > answer.clean_step_s:
        return joined([saved(Gain(-tried.gain.low_s, -tried.gain.high_s, tried.gain.basis)), "more"], " ")
    return saved(tried.gain)


def _name(tried: Tried) -> str:
    return tried.changes[0] if len(tried.changes) == 1 else "together"


def _picture(answer: WhatIf, tried: list[Tried]) -> Picture:
    rows = []
    if _s(answer.traced_step_s) != _s(answer.clean_step_s):
        rows.append(Bar("while traced", [("a-other", answer.traced_step_s, "")], behind=_s(answer.traced_step_s)))
    now = [("a-compute", answer.clean_step_s, "")]
    rows.append(Bar("as it is", now, (answer.clean_low_s, answer.clean_high_s), _s(answer.clean_step_s)))
    for one in tried:
        ends = (max(answer.clean_step_s - one.gain.high_s, 0.0), answer.clean_step_s - one.gain.low_s)
        left = [("a-compute", one.step_s, f"{_name(one)}: leaves {_s(one.step_s)}")]
        rows.append(Bar(_name(one), left, ends, _s(one.step_s)))
    parts, height = bars(rows, _s, (answer.clean_step_s, "as it is"))
    label = f"What a {answer.unit} takes with each change"
    return Picture("whatif", label, picture(parts, height, label), "Lines: the range of each replay.", answer.source)


def _s(value: float) -> str:
    return show(value, Unit.SECOND)
