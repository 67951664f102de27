"""The answer to "what if" as text and as JSON."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from stallwise.findings.whatif import Tried, WhatIf
from stallwise.render.phrases import gain_range
from stallwise.units import Unit, show


def as_text(answer: WhatIf) -> str:
    """A table, best first."""
    count = f"{answer.steps} {answer.unit}{'' if answer.steps == 1 else 's'}"
    lines = [
        f"{count} of {answer.source}: {_s(answer.traced_step_s)} while traced, "
        f"{_s(answer.clean_step_s)} without the profiler ({_s(answer.clean_low_s)} to {_s(answer.clean_high_s)})",
        "",
    ]
    lines += [_line(tried) for tried in answer.alone]
    if answer.together is not None:
        lines += ["", _line(answer.together), f"{'in this order':16s}  {', then '.join(answer.order)}"]
    if not answer.alone:
        lines.append("nothing that can be replayed wins anything here")
    lines += [f"{name:16s}  there is none of it in this trace" for name in answer.nothing]
    return "\n".join(lines)


def _line(tried: Tried) -> str:
    name = tried.changes[0] if len(tried.changes) == 1 else "together"
    gain = f"{gain_range(tried.gain)} less"
    return f"{name:16s}  {gain:24s}  leaves {_s(tried.step_s):9s}  {tried.meaning}"


def as_json(answer: WhatIf) -> dict[str, Any]:
    """The same as plain data."""
    return asdict(answer)


def _s(seconds: float) -> str:
    return show(seconds, Unit.SECOND)
