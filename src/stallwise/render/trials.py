"""What was tried, as a table: the change, the gain with its interval, what was predicted, the loss, what it needs and risks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stallwise.doctor.findings.diagnosis import Diagnosis
from stallwise.doctor.findings.trial import FASTER, LOSS, NOT_HERE, NOTHING, SLOWER, UNSURE, Trial, Trials
from stallwise.terminal import terminal_columns
from stallwise.units import Unit, show

if TYPE_CHECKING:
    from rich.table import Table

MIN_WIDTH, MAX_WIDTH = 80, 160
STYLE = {FASTER: "green", SLOWER: "red", UNSURE: "yellow"}
ONCE_S = 0.5  # a one-off cost below this is not worth a word
MORE_BYTES = 64 << 20
LEAST_SHOWN = 0.001  # a gain below a thousandth is none


def to_text(
    trials: Trials, diagnosis: Diagnosis | None = None, *, color: bool = False, width: int | None = None
) -> str:
    """The table for a terminal: every trial, in the order it was made; then what could not be tried, and why."""
    from rich.console import Console  # 45 modules that no answer without trials needs

    wide = max(MIN_WIDTH, min(MAX_WIDTH, width or terminal_columns(120)))
    console = Console(width=wide, color_system="standard" if color else None, force_terminal=color, highlight=False)
    with console.capture() as capture:
        for line in _head(trials):
            console.print(line)
        rows = [t for t in trials.found if t.measured]
        if any(t.state != NOT_HERE for t in trials.found):
            console.print(_table(trials, diagnosis))
        for line in _tail(trials, sorted(rows, key=lambda t: -t.ratio)):
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
    line = f"{what}{ranks} · a step takes {show(step, Unit.SECOND)}"
    if about.get("took_s") and about.get("steps"):
        line += f" · {about['took_s']:.0f} s, {about['steps']} steps"
    if smallest:
        line += f" · the smallest gain the blocks can show is about {100 * (smallest - 1):.1f}%"
    return [line]


def _table(trials: Trials, diagnosis: Diagnosis | None) -> Table:
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for head in ("change", "measured", "predicted", "loss"):
        table.add_column(head, no_wrap=True)
    table.add_column("", no_wrap=False)
    both = trials.together
    for trial in [*trials.found, *([both] if both and both.measured else [])]:
        if trial.state == NOT_HERE:
            continue
        style = STYLE.get(trial.state, "")
        table.add_row(
            Text(trial.name, style=style),
            Text(gain(trial) if trial.measured else trial.state, style=style),
            predicted(trial, diagnosis),
            loss(trial),
            meaning(trial) if trial.measured else trial.why,
        )
    return table


def loss(trial: Trial) -> str:
    """What became of the loss: nothing is said of trials that change it by their nature."""
    if trial.state == LOSS:
        return "changed"
    if not trial.measured or not trial.keeps_loss or trial.loss_after is None:
        return "-"
    return "unchanged" if trial.loss_after == trial.loss_before else "within noise"


def meaning(trial: Trial) -> str:
    """What the figures say, and what the change costs beside its steps."""
    parts = [_answer(trial)]
    if trial.one_off_s >= ONCE_S:
        parts.append(f"once {show(trial.one_off_s, Unit.SECOND)}")
    if trial.more_bytes >= MORE_BYTES:
        parts.append(f"{show(trial.more_bytes, Unit.BYTE)} more")
    return "; ".join(parts)


def _answer(trial: Trial) -> str:
    if trial.state == FASTER:
        saved = f"{show(trial.saved_s(trial.ratio), Unit.SECOND)} of {show(trial.before_s, Unit.SECOND)}"
        proves = f"proves {trial.causes[0]}: " if trial.removes and trial.causes else "faster: saves "
        return proves + saved
    if trial.state == NOTHING:
        most = max(0.0, trial.high - 1)
        return f"no gain above {100 * most:.1f}%" if most >= LEAST_SHOWN else "no gain"
    if trial.state == UNSURE and trial.detectable > 1:
        return f"inconclusive; {100 * (trial.detectable - 1):.0f}% would show"
    return trial.state


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
    """What the doctor expects of the cause that this trial takes away: "1.9-2.1x"."""
    findings = diagnosis.findings if diagnosis else ()
    own = next((f for f in findings if f.tried == trial.name), None)
    gain = own.predicted if own is not None else None
    if not trial.measured:
        gain = next((f.gain for f in findings if f.cause in trial.causes and not f.tried), None)
    ledger = diagnosis.ledger if diagnosis else None
    step_s = ledger.whole_s if ledger is not None and ledger.unit == "step" else trial.before_s
    if gain is None or step_s <= gain.high_s:
        return ""
    low, high = (step_s / (step_s - s) for s in (gain.low_s, gain.high_s))
    return f"{low:.2f}-{high:.2f}x"


def without_gain(rows: list[Trial]) -> list[str]:
    """What it says that no trial won anything: shown to be worth nothing is one thing, lost in the noise another."""
    unsure = [t for t in rows if t.state == UNSURE]
    sure = [t for t in rows if t.state != UNSURE]
    lines = []
    if sure:
        most = max(0.0, max(t.high for t in sure) - 1)
        no_gain = f"no gain above {100 * most:.1f}%" if most >= LEAST_SHOWN else "no gain"
        lines.append(f"Nothing is won by {_listed(sure)}: {no_gain}.")
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
    left_out = [t for t in trials.found if t.state == NOT_HERE]
    if left_out:
        lines.append("not applicable")
        lines += [f"  {t.name:20} {t.why}" for t in left_out]
    held = trials.about.get("held_off")
    if trials.about.get("rehearsal") and isinstance(held, dict) and held:
        lines.append("held off: " + ", ".join(f"{name} {count}x" for name, count in sorted(held.items())))
    if trials.about.get("ended") not in (None, "done"):
        lines.append(f"ended early: {trials.about['ended']}")
    return lines
