"""The answer to "what if" as text and as JSON."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from stallwise.doctor.findings.finding import Gain
from stallwise.doctor.findings.whatif import Tried, WhatIf
from stallwise.render.phrases import ends, gain_range
from stallwise.units import Unit, show

NOTICED = 0.005  # of the step; less is said as nothing


def as_text(answer: WhatIf) -> str:
    """A table, best first."""
    lines = [f"{counted(answer)} {answer.source}: {step_line(answer)}", ""]
    lines += [_line(tried, answer) for tried in answer.alone]
    if answer.together is not None:
        lines += ["", _line(answer.together, answer), f"{'in this order':16s}  {', then '.join(answer.order)}"]
    if not answer.alone:
        lines.append("nothing that can be replayed wins anything here")
    lines += [f"{name:16s}  {why}" for name, why in answer.nothing.items()]
    lines += ["", *answer.remarks] if answer.remarks else []
    return "\n".join(lines)


def counted(answer: WhatIf) -> str:
    """ "4 steps of", and of which trace where there are several."""
    steps = f"{answer.steps} {answer.unit}{'' if answer.steps == 1 else 's'}"
    return f"{steps} of the first of {answer.ranks} traces:" if answer.ranks > 1 else f"{steps} of"


def step_line(answer: WhatIf) -> str:
    """The step, how far it may lie off, and the traced one where it differs; or why the profiler is still in it."""
    if answer.as_traced:
        return f"{_s(answer.clean_step_s)} as traced ({answer.as_traced})"
    step = _s(answer.clean_step_s)
    step_text = (
        f"{step} ({ends(answer.clean_low_s, answer.clean_high_s)})"
        if answer.clean_low_s < answer.clean_high_s
        else step
    )
    traced = _s(answer.traced_step_s)
    return step_text if traced == step else f"{step_text} without the profiler, {traced} while traced"


def won(tried: Tried, answer: WhatIf) -> str:
    """What a change wins, or costs."""
    if abs(answer.clean_step_s - tried.step_s) < NOTICED * answer.clean_step_s:
        return "nothing to notice"
    if tried.step_s > answer.clean_step_s:
        return f"{gain_range(Gain(-tried.gain.low_s, -tried.gain.high_s, tried.gain.basis))} more"
    return f"{gain_range(tried.gain)} less"


def _line(tried: Tried, answer: WhatIf) -> str:
    name = tried.changes[0] if len(tried.changes) == 1 else "together"
    return f"{name:16s}  {won(tried, answer):24s}  leaves {_s(tried.step_s):9s}  {tried.meaning}"


def as_json(answer: WhatIf) -> dict[str, Any]:
    """The same as plain data."""
    return asdict(answer)


def _s(seconds: float) -> str:
    return show(seconds, Unit.SECOND)
