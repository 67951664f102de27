"""What a step takes after each change, as a page."""

from __future__ import annotations

from stallwise.doctor.findings.whatif import Tried, WhatIf
from stallwise.render.answers import Block, Figure, Grid, Rows, Text, Verdict, page
from stallwise.render.pictures._bars import Bar, bars
from stallwise.render.svg import picture
from stallwise.render.whatif import as_text, counted, step_line, won
from stallwise.units import Unit, show


def to_html(answer: WhatIf) -> str:
    """The whole page."""
    tried = [*answer.alone, *([answer.together] if answer.together else [])]
    blocks: list[Block | None] = [_picture(answer, tried), _table(answer, tried), Rows("In this order", _order(answer)),
              Rows("Not in this trace", [f"{name}: {why}" for name, why in answer.nothing.items()]),
              Rows("Remarks", answer.remarks), Text("The whole answer", as_text(answer))]  # fmt: skip
    return page(_verdict(answer), blocks, verb="whatif", subject=answer.source, inputs=[answer.source])


def _verdict(answer: WhatIf) -> Verdict:
    now = f"A {answer.unit} takes {_s(answer.clean_step_s)}"
    basis = f"{counted(answer)} {answer.source}, replayed"
    profiler = f"{step_line(answer)}."
    if not answer.alone or answer.alone[0].step_s >= answer.clean_step_s:
        return Verdict(f"{now}; nothing that can be replayed wins anything", profiler, "", "unclear", basis)
    best = answer.alone[0]
    worth = f"{best.meaning}: {_s(best.gain.low_s)} to {_s(best.gain.high_s)} a {answer.unit} less."
    return Verdict(f"{now}; {_s(best.step_s)} with {best.changes[0]}", profiler, worth, "good", basis)


def _picture(answer: WhatIf, tried: list[Tried]) -> Figure:
    rows = []
    if _s(answer.traced_step_s) != _s(answer.clean_step_s):
        rows.append(Bar("while traced", [("a-other", answer.traced_step_s, "")], behind=_s(answer.traced_step_s)))
    rows.append(
        Bar("as it is", [("a-compute", answer.clean_step_s, "")], (answer.clean_low_s, answer.clean_high_s),
            _s(answer.clean_step_s))
    )  # fmt: skip
    for one in tried:
        ends = (max(answer.clean_step_s - one.gain.high_s, 0.0), answer.clean_step_s - one.gain.low_s)
        left = [("a-compute", one.step_s, f"{_name(one)}: leaves {_s(one.step_s)}")]
        rows.append(Bar(_name(one), left, ends, _s(one.step_s)))
    parts, height = bars(rows, _s, (answer.clean_step_s, "as it is"))
    label = f"What a {answer.unit} takes with each change"
    return Figure("whatif", label, picture(parts, height, label), "Lines: the range of each replay.", answer.source)


def _table(answer: WhatIf, tried: list[Tried]) -> Grid:
    rows = [(_name(t), t.meaning, won(t, answer), _s(t.step_s), t.gain.basis) for t in tried]
    return Grid("Each change alone, and all together", ("change", "what it does", "wins", "leaves", "basis"), rows,
                frozenset({2, 3}))  # fmt: skip


def _order(answer: WhatIf) -> list[str]:
    return [f"{', then '.join(answer.order)}: each wins most beside those before it."] if len(answer.order) > 1 else []


def _name(tried: Tried) -> str:
    return tried.changes[0] if len(tried.changes) == 1 else "together"


def _s(seconds: float) -> str:
    return show(seconds, Unit.SECOND)
