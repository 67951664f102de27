"""What was tried: measured gains with their intervals, against the ranges that were predicted."""

from __future__ import annotations

from stallwise.doctor.findings.diagnosis import Diagnosis
from stallwise.doctor.findings.trial import FASTER, SLOWER, Trial
from stallwise.render.blocks import Picture
from stallwise.render.phrases import measured_gain, place
from stallwise.render.svg import WIDTH, box, dot, line, picture, text, ticks
from stallwise.units import Unit, show

PLACE = 5
LEFT, RIGHT, ROW, TOP = 190.0, 30.0, 30.0, 30.0
MOST = 24  # rows
WIDEST = 20.0  # times as fast: what lies beyond is drawn at the edge


def draw(diagnosis: Diagnosis) -> Picture | None:
    """A row a trial: the predicted range as a bar, the measured interval as a line with its dot."""
    tried = [t for trials in diagnosis.trials for t in trials.found if t.measured]
    tried = sorted(tried, key=lambda t: -t.ratio)[:MOST]
    if not tried:
        return None
    expected = {f.tried: f.predicted for f in diagnosis.findings if f.tried and f.predicted is not None}
    ranges = {t.name: _range(t, expected[t.name].low_s, expected[t.name].high_s) for t in tried if t.name in expected}
    ends = [v for t in tried for v in (t.low, min(t.high, WIDEST))] + [v for pair in ranges.values() for v in pair]
    low, high = min([0.95, *ends]), min(max([1.05, *ends]), WIDEST)

    def at(ratio: float) -> float:
        return LEFT + (min(max(ratio, low), high) - low) / (high - low) * (WIDTH - LEFT - RIGHT)

    bottom = TOP + ROW * len(tried)
    parts = [line(at(1.0), TOP - 6, at(1.0), bottom, "after")]
    for value in ticks(low, high, 8):
        parts.append(text(at(value), TOP - 12, f"{value:g}x", "axis", "middle"))
    for row, trial in enumerate(tried):
        y = TOP + row * ROW
        parts.append(text(LEFT - 10, y + 16, trial.name, "t", "end"))
        if trial.name in ranges:
            first, last = ranges[trial.name]
            parts.append(
                box(at(first), y + 4, max(at(last) - at(first), 2.0), 16, "track", f"predicted {first:.2f}-{last:.2f}x")
            )
        parts.append(line(at(trial.low), y + 12, at(trial.high), y + 12, "c1"))
        kind = {FASTER: "meter", SLOWER: "a-input-wait"}.get(trial.state, "a-other")
        parts.append(dot(at(trial.ratio), y + 12, 4.5, kind, f"{trial.name}: {measured_gain(trial)}"))
    head = ("change", "before", "after", "gain", "verdict", "predicted")
    rows = [
        (
            t.name,
            show(t.before_s, Unit.SECOND),
            show(t.after_s, Unit.SECOND),
            measured_gain(t),
            t.state,
            _words(ranges.get(t.name)),
        )
        for t in tried
    ]
    return Picture(
        "trials",
        "What was tried in the job, and what it was worth",
        picture(parts, bottom + 10, f"Measured gains of {len(tried)} changes"),
        "Dot and line: measured, with its 90% interval. Bar: what was predicted. Right of 1x is faster.",
        place(tried[0].source),
        (),
        (head, *rows),
    )


def _range(trial: Trial, low_s: float, high_s: float) -> tuple[float, float]:
    """A saving as a ratio of steps."""
    rest_low, rest_high = (max(trial.before_s - s, trial.before_s / WIDEST) for s in (low_s, high_s))
    return trial.before_s / rest_low, trial.before_s / rest_high


def _words(pair: tuple[float, float] | None) -> str:
    return f"{pair[0]:.2f} to {pair[1]:.2f}x" if pair else ""
