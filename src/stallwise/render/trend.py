"""A trend as text and as JSON."""

from __future__ import annotations

from typing import Any

from stallwise.doctor.findings.comparison import Change
from stallwise.doctor.findings.trend import SCHEMA, Shift, Trend
from stallwise.render.comparison import comparison_dict
from stallwise.render.plot import sparkline
from stallwise.units import Unit, show

MOST_REASONS = 4


def trend_dict(trend: Trend) -> dict[str, Any]:
    """Plain containers, ready for json.dumps."""
    return {
        "schema": SCHEMA,
        "metric": trend.metric,
        "unit": trend.unit.value,
        "more_is_better": trend.rate,
        "noise_share": trend.noise_share,
        "runs": [
            {"name": r.name, "when": r.when, "value": r.value, "state": r.state, "cause": r.cause} for r in trend.runs
        ],
        "changes": [
            {
                "at": s.at,
                "between": [trend.runs[s.at - 1].name, trend.runs[s.at].name],
                "before": s.before,
                "after": s.after,
                "slower_by": s.ratio - 1.0,
                "times_the_noise": s.against,
                "comparison": comparison_dict(s.why) if s.why else None,
            }
            for s in trend.shifts
        ],
    }


def trend_line(trend: Trend) -> str:
    """The answer in a sentence."""
    measured = sum(r.value is not None for r in trend.runs)
    if not trend.metric:
        return f"The {len(trend.runs)} runs share no measure of speed."
    if not trend.shifts:
        few = " (three runs at least are needed)" if measured < 3 else ""
        return f"No change in {trend.metric} over {measured} runs that stands out of their own noise{few}."
    return " ".join(f"{shift_line(s, trend)}." for s in trend.shifts)


def shift_line(shift: Shift, trend: Trend) -> str:
    """One change, with its place."""
    word = "slower" if shift.ratio > 1 else "faster"
    by = shift.ratio - 1.0 if shift.ratio > 1 else 1.0 / shift.ratio - 1.0
    before, after = show(shift.before, trend.unit), show(shift.after, trend.unit)
    return f"{by:.1%} {word} from {trend.runs[shift.at].name} on: {trend.metric} {before} before, {after} since"


def reasons(shift: Shift) -> list[str]:
    """What else changed between the runs on both sides."""
    if shift.why is None:
        return []
    moved = shift.why.regressions if shift.ratio > 1 else shift.why.improvements
    rows = [_change_text(c) for c in moved[:MOST_REASONS]]
    rows += [f"set up differently: {c.what} {c.good} -> {c.bad}" for c in shift.why.setup[:MOST_REASONS]]
    rows += [f"new: {cause}" for cause in shift.why.appeared] + [f"gone: {cause}" for cause in shift.why.vanished]
    return rows


def _change_text(change: Change) -> str:
    delta = f" ({'+' if change.delta_s > 0 else '-'}{show(abs(change.delta_s), Unit.SECOND)})" if change.delta_s else ""
    return f"{change.what} {change.good} -> {change.bad}{delta}{f' [{change.cause}]' if change.cause else ''}"


def trend_text(trend: Trend) -> str:
    """The sentence, the line over the runs, each run, and why it changed where it did."""
    values = [r.value for r in trend.runs if r.value is not None]
    lines = [trend_line(trend)]
    if len(values) > 1:
        lines += [
            "",
            f"{trend.metric}  {sparkline(values)}  {show(min(values), trend.unit)} to {show(max(values), trend.unit)}",
        ]
    if len(values) > 1:
        lines.append(f"runs of one level differ by {trend.noise_share:.1%}")
    lines.append("")
    wide = max(len(r.name) for r in trend.runs)
    since = {s.at: s for s in trend.shifts}
    for number, run in enumerate(trend.runs):
        mark = ">" if number in since else " "
        value = show(run.value, trend.unit) if run.value is not None else "-"
        when = f"{run.when[:16].replace('T', ' ')}  " if run.when else ""
        lines.append(f"{mark} {when}{run.name:{wide}}  {value:>10}  {run.cause or run.state}")
    for shift in trend.shifts:
        rows = reasons(shift)
        lines += ["", f"what changed at {trend.runs[shift.at].name}", *(f"  {row}" for row in rows)] if rows else []
    return "\n".join(line.rstrip() for line in lines)
