"""What was tried, as a table: the change, the step before and after, the gain with its interval, what it needs and risks."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

from stallwise.findings.diagnosis import Diagnosis
from stallwise.findings.trial import FASTER, SLOWER, UNSURE, Trial, Trials
from stallwise.units import Unit, show

if TYPE_CHECKING:
    from rich.table import Table

MIN_WIDTH, MAX_WIDTH = 80, 160
STYLE = {FASTER: "green", SLOWER: "red", UNSURE: "yellow"}
ONCE_S = 0.5  # a one-off cost below this is not worth a word
MORE_BYTES = 64 << 20


def to_text(
    trials: Trials, diagnosis: Diagnosis | None = None, *, color: bool = False, width: int | None = None
) -> str:
    """The table for a terminal, best first; what could not be tried below it."""
    from rich.console import Console  # 45 modules that no answer without trials needs

    wide = max(MIN_WIDTH, min(MAX_WIDTH, width or shutil.get_terminal_size((120, 40)).columns))
    console = Console(width=wide, color_system="standard" if color else None, force_terminal=color, highlight=False)
    with console.capture() as capture:
        for line in _head(trials):
            console.print(line)
        rows = sorted((t for t in trials.found if t.measured), key=lambda t: -t.ratio)
        if rows:
            console.print(_table(rows, trials.together, diagnosis))
        for line in _tail(trials, rows):
            console.print(line)
    return "\n".join(line.rstrip() for line in capture.get().splitlines())


def tried_rows(trials: Trials, diagnosis: Diagnosis) -> list[str]:
    """One line a trial, best first, for a diagnosis."""
    rows = sorted((t for t in trials.found if t.measured), key=lambda t: -t.ratio)
    return [f"{t.name} {gain(t)} {verdict(t, diagnosis)}" for t in rows]


def _head(trials: Trials) -> list[str]:
    about = trials.about
    step, smallest = about.get("step_s"), about.get("detectable_ratio")
    if not step:
        return ["Nothing could be tried: the job ended before its loop had settled."]
    what = f"{about.get('kind', 'training')} on {about.get('device', '?')}"
    ranks = f", {about['ranks']} ranks" if about.get("ranks", 1) > 1 else ""
    line = f"{what}{ranks} · a step takes {show(step, Unit.SECOND)} · blocks of {about.get('steps_per_block')} steps"
    if smallest:
        line += f" · the smallest gain they can show is about {100 * (smallest - 1):.1f}%"
    return [line]


def _table(rows: list[Trial], both: Trial | None, diagnosis: Diagnosis | None) -> Table:
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for head, justify in (("change", "left"), ("before", "right"), ("after", "right"), ("gain", "left"), ("", "left")):
        table.add_column(head, justify=justify, no_wrap=True)  # type: ignore[arg-type]
    for trial in [*rows, *([both] if both and both.measured else [])]:
        style = STYLE.get(trial.state, "")
        table.add_row(
            Text(trial.name, style=style),
            show(trial.before_s, Unit.SECOND),
            show(trial.after_s, Unit.SECOND),
            Text(gain(trial), style=style),
            verdict(trial, diagnosis),
        )
    return table


def gain(trial: Trial) -> str:
    """ "1.24x (1.21 to 1.27)"."""
    if trial.high == float("inf"):
        return f"{trial.ratio:.2f}x (too few blocks to tell)"
    return f"{trial.ratio:.2f}x ({trial.low:.2f} to {trial.high:.2f})"


def verdict(trial: Trial, diagnosis: Diagnosis | None) -> str:
    """The word for it, and what it costs beside its steps."""
    parts = [trial.state]
    expected = predicted(trial, diagnosis)
    if expected:
        parts.append(f"predicted {expected}")
    if trial.one_off_s >= ONCE_S:
        parts.append(f"once {show(trial.one_off_s, Unit.SECOND)}")
    if trial.more_bytes >= MORE_BYTES:
        parts.append(f"{show(trial.more_bytes, Unit.BYTE)} more")
    if trial.state == UNSURE and trial.detectable > 1:
        parts.append(f"{100 * (trial.detectable - 1):.0f}% would show")
    return "; ".join(parts)


def predicted(trial: Trial, diagnosis: Diagnosis | None) -> str:
    """What the doctor expected of the cause that this trial takes away: "1.9-2.1x"."""
    finding = next((f for f in (diagnosis.findings if diagnosis else ()) if f.tried == trial.name), None)
    ledger = diagnosis.ledger if diagnosis else None
    step_s = ledger.whole_s if ledger is not None and ledger.unit == "step" else trial.before_s
    if finding is None or finding.predicted is None or step_s <= finding.predicted.high_s:
        return ""
    low, high = (step_s / (step_s - s) for s in (finding.predicted.low_s, finding.predicted.high_s))
    return f"{low:.2f}-{high:.2f}x"


def without_gain(rows: list[Trial]) -> list[str]:
    """What it says that no trial won anything: shown to be worth nothing is one thing, lost in the noise another."""
    unsure = [t for t in rows if t.state == UNSURE]
    sure = [t for t in rows if t.state != UNSURE]
    lines = []
    if sure:
        most = max(0.0, max(t.high for t in sure) - 1)
        said = f"no gain above {100 * most:.1f}%" if most >= 0.001 else "no gain"
        lines.append(f"Nothing is won by {_listed(sure)}: {said}.")
    if unsure:
        lines.append(
            f"Not told from the noise of these blocks: {_listed(unsure)}. More time (--seconds) or a quieter machine tells."
        )
    return lines


def _listed(trials: list[Trial]) -> str:
    return ", ".join(t.name for t in trials)


def _tail(trials: Trials, rows: list[Trial]) -> list[str]:
    lines = []
    kept = [t for t in rows if t.state == FASTER]
    if not kept:
        lines += without_gain(rows)
    wide = max((len(t.name) for t in kept), default=0)
    lines += [f"to keep {t.name:{wide}}  {t.needs}" + (f"   risk: {t.risk}" if t.risk else "") for t in kept]
    lines += [f"note    {t.name}: {remark}" for t in rows for remark in t.remarks]
    both = trials.together
    if both is not None and both.measured and both.alone:
        lines.append(
            f"{' and '.join(both.of)}: {both.alone:.2f}x if they added, {both.ratio:.2f}x measured; {both.adds}."
        )
    broken = [t for t in trials.found if not t.measured and t.state != "not applicable"]
    lines += [f"{t.name}: {t.state}{f' ({t.why})' if t.why else ''}" for t in broken]
    left_out = [t for t in trials.found if t.state == "not applicable"]
    if left_out:
        lines.append("not tried")
        lines += [f"  {t.name:20} {t.why}" for t in left_out]
    held = trials.about.get("held_off")
    if trials.about.get("rehearsal") and isinstance(held, dict) and held:
        lines.append("held off: " + ", ".join(f"{name} {count}x" for name, count in sorted(held.items())))
    if trials.about.get("ended") not in (None, "done"):
        lines.append(f"ended early: {trials.about['ended']}")
    return lines
