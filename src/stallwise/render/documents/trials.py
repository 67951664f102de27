"""What was tried in a job: the change, the gain with its interval, what was predicted, the loss, what it needs and risks."""

from __future__ import annotations

from stallwise.doctor.findings.diagnosis import Diagnosis
from stallwise.doctor.findings.trial import FASTER, LOSS, NOT_HERE, NOTHING, UNSURE, Trial, Trials
from stallwise.render.blocks import (
    Column,
    Depth,
    Document,
    Facts,
    Number,
    Part,
    Picture,
    Table,
    Verdict,
    Words,
    number,
    seconds,
    sentence,
    steps,
    table,
)
from stallwise.render.blocks import document as filled
from stallwise.render.phrases import measured_gain
from stallwise.units import Unit, show

ONCE_S = 0.5  # a one-time cost below this is not worth a word
MORE_BYTES = 64 << 20
LEAST_SHOWN = 0.001  # a gain below a thousandth is none


def document(trials: Trials, diagnosis: Diagnosis | None = None, *, deep: bool = False) -> Document:
    """Every trial in the order it was made; then what to keep, and what could not be tried, and why."""
    rows = sorted((t for t in trials.found if t.measured), key=lambda t: -t.ratio)
    both = trials.together
    held = trials.about.get("held_off")
    kept = [(t.name, f"{t.needs}{f'; risk: {t.risk}' if t.risk else ''}") for t in rows if t.state == FASTER]
    remarks = [f"{t.name}: {remark}" for t in rows for remark in t.remarks]
    if both is not None and both.measured and both.alone:
        remarks.append(
            f"{' and '.join(both.of)}: {both.alone:.2f}x if they added, {both.ratio:.2f}x measured; {both.adds}."
        )
    if trials.about.get("rehearsal") and isinstance(held, dict) and held:
        remarks.append("held off: " + ", ".join(f"{name} {times}x" for name, times in sorted(held.items())))
    if trials.about.get("ended") not in (None, "done"):
        remarks.append(f"ended early: {trials.about['ended']}")
    left_out = tuple((t.name, t.why) for t in trials.found if t.state == NOT_HERE)
    return filled(
        _verdict(trials, rows),
        _table(trials, diagnosis),
        _drawn(diagnosis) if deep and diagnosis is not None else None,
        Facts(tuple(kept), title="To keep it", label="keep"),
        steps("Remarks", remarks, label="note"),
        Facts(left_out, title="Not applicable"),
        verb="try",
        subject=f"{trials.about.get('kind', 'training')} on {trials.about.get('device', '?')}",
        inputs=tuple(diagnosis.evidence.inputs) if diagnosis else (),
    )


def _drawn(diagnosis: Diagnosis) -> Picture | None:
    from stallwise.render.pictures.trials import draw  # only a page draws

    return draw(diagnosis)


def tried(trials: Trials, diagnosis: Diagnosis) -> Table:
    """What was measured, best first, below a diagnosis."""
    rows = sorted((t for t in trials.found if t.measured), key=lambda t: -t.ratio)
    cells = ((t.name, measured_gain(t), predicted(t, diagnosis), meaning(t)) for t in rows)
    head = (Column("change"), Column("measured"), Column("predicted", 1), sentence("what it shows", 2))
    return table("Tried in the job", head, cells, label="tried", depth=Depth.FIRST)


def _verdict(trials: Trials, rows: list[Trial]) -> Verdict:
    about = trials.about
    step_s, smallest = about.get("step_s"), about.get("detectable_ratio")
    if not step_s:
        return Verdict("Nothing could be tried: the job ended before its loop had settled.", tone="unclear")
    ranks = f", {about['ranks']} ranks" if about.get("ranks", 1) > 1 else ""
    tail = f"{about.get('kind', 'training')} on {about.get('device', '?')}{ranks}"
    if about.get("took_s") and about.get("steps"):
        tail += f" · {about['took_s']:.0f} s, {about['steps']} steps"
    least = f"; the smallest gain these blocks can show is about {100 * (smallest - 1):.1f}%" if smallest else ""
    step: tuple[Part, ...] = ("A step takes ", seconds(step_s), f"{least}.")
    best = next((t for t in rows if t.state == FASTER), None)
    if best is not None:
        what: Words = (f"{best.name} is ", Number(best.ratio, Unit.RATIO), " as fast, measured: ", *_before_after(best))
        return Verdict(
            what, step, f"To keep it: {best.needs}" if best.needs else "", "good", tail, do_depth=Depth.REPORT
        )
    if not rows:
        return Verdict("Nothing could be measured.", step, "", "unclear", tail)
    unsure = any(t.state == UNSURE for t in rows)
    what = "Nothing was shown to be faster." if unsure else "Nothing that was tried is faster."
    return Verdict(what, (*step, " " + " ".join(without_gain(rows))), "", "unclear" if unsure else "good", tail)


def _before_after(trial: Trial) -> tuple[str | Number, ...]:
    return (seconds(trial.before_s), " before, ", seconds(trial.after_s), " after.")


def _table(trials: Trials, diagnosis: Diagnosis | None) -> Table:
    both = trials.together
    shown = [t for t in (*trials.found, *([both] if both and both.measured else [])) if t.state != NOT_HERE]
    rows = (
        (
            t.name, t.title, seconds(t.before_s) if t.measured else "", seconds(t.after_s) if t.measured else "",
            measured_gain(t) if t.measured else t.state, predicted(t, diagnosis), loss(t), meaning(t) if t.measured else t.why,
        )
        for t in shown
    )  # fmt: skip
    head = (Column("change"), Column("what it is", 5), number("before", 4), number("after", 4), Column("measured"),
            Column("predicted", 1), Column("loss", 2), sentence("what it shows"))  # fmt: skip
    return table("Measured", head, rows, best=frozenset(i for i, t in enumerate(shown) if t.state == FASTER))


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
        parts.append(f"one-time {show(trial.one_off_s, Unit.SECOND)}")
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
        lines.append(f"No gain from {_listed(sure)}: {no_gain}.")
    if unsure:
        lines.append(
            f"Within the noise of these blocks: {_listed(unsure)}. More time (--seconds) or a quieter machine would show it."
        )
    return lines


def _listed(trials: list[Trial]) -> str:
    return ", ".join(t.name for t in trials)
