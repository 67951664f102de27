"""What was tried in a job, as a page."""

from __future__ import annotations

from stallwise.doctor.findings.diagnosis import Diagnosis
from stallwise.doctor.findings.trial import FASTER, UNSURE, Trial, Trials
from stallwise.render.answers import Block, Grid, Rows, Text, Verdict, page
from stallwise.render.pictures import trials as drawn
from stallwise.render.trials import gain, to_text, verdict, without_gain
from stallwise.units import Unit, show


def to_html(trials: Trials, diagnosis: Diagnosis) -> str:
    """The whole page."""
    rows = sorted((t for t in trials.found if t.measured), key=lambda t: -t.ratio)
    kept = [f"{t.name}: {t.needs}{f'; risk: {t.risk}' if t.risk else ''}" for t in rows if t.state == FASTER]
    left_out = [f"{t.name}: {t.why or t.state}" for t in trials.found if not t.measured]
    blocks: list[Block | None] = [
        drawn.draw(diagnosis),
        _table([*rows, *([trials.together] if trials.together and trials.together.measured else [])], diagnosis),
        Rows("To keep it", kept),
        Rows("Remarks", [f"{t.name}: {remark}" for t in rows for remark in t.remarks]),
        Rows("Not tried", left_out),
        Text("The whole answer", to_text(trials, diagnosis, width=120)),
    ]
    subject = f"{trials.about.get('kind', 'training')} on {trials.about.get('device', '?')}"
    return page(_verdict(trials, rows), blocks, verb="try", subject=subject,
                inputs=diagnosis.evidence.inputs)  # fmt: skip


def _verdict(trials: Trials, rows: list[Trial]) -> Verdict:
    step_s = trials.about.get("step_s")
    if not rows or not step_s:
        return Verdict("Nothing could be tried", "The job ended before its loop had settled.", "", "unclear", "")
    best = next((t for t in rows if t.state == FASTER), None)
    tail = f"{len(rows)} changes, each with and without in turn; blocks of {trials.about.get('steps_per_block')} steps"
    if best is None:
        why = f"A step takes {show(step_s, Unit.SECOND)}. {' '.join(without_gain(rows))}"
        unsure = any(t.state == UNSURE for t in rows)
        return Verdict("Nothing was shown to be faster" if unsure else "Nothing that was tried is faster", why, "",
                       "unclear" if unsure else "good", tail)  # fmt: skip
    return Verdict(
        f"{best.name} makes a step {best.ratio:.2f} times as fast, measured",
        f"{show(best.before_s, Unit.SECOND)} before, {show(best.after_s, Unit.SECOND)} after: {gain(best)}.",
        f"To keep it: {best.needs}" if best.needs else "",
        "good",
        tail,
    )


def _table(rows: list[Trial], diagnosis: Diagnosis) -> Grid:
    cells = [
        (t.name, t.title, show(t.before_s, Unit.SECOND), show(t.after_s, Unit.SECOND), gain(t), verdict(t, diagnosis))
        for t in rows
    ]
    head = ("change", "what it is", "before", "after", "gain", "verdict")
    return Grid("Measured, best first", head, cells, frozenset({2, 3}))
