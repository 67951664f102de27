"""What was looked at, in one line: how many steps, of whom, on what, from which artifacts."""

from __future__ import annotations

from stallwise.evidence.catalog import stages
from stallwise.evidence.catalog import step as traced
from stallwise.evidence.catalog.hardware import GPU_NAME
from stallwise.evidence.catalog.job import RECORDER_NOTE
from stallwise.evidence.evidence import Evidence
from stallwise.units import Unit, show

NOTICED = 0.03  # of the step: less than runs differ by


def subject_of(evidence: Evidence) -> str:
    """ "4 steps of rank 0 on NVIDIA H200 · PyTorch trace + nvidia-smi CSV · 120 ms a step while traced"."""
    parts = [_not_recorded(evidence), _what(evidence), " + ".join(evidence.formats), _how_long(evidence)]
    return " · ".join(part for part in parts if part)


def _not_recorded(evidence: Evidence) -> str:
    """Where a recorder was there and saw no step, why: nobody must take its silence for an answer."""
    if evidence.all(traced.STEP_COUNT):
        return ""
    return "; ".join(dict.fromkeys(str(fact.value) for fact in evidence.all(RECORDER_NOTE)))


def _what(evidence: Evidence) -> str:
    counts = evidence.all(traced.STEP_COUNT)
    if not counts:
        return ""
    unit = evidence.text(traced.STEP_UNIT, "step")
    number = round(evidence.value(traced.STEP_COUNT))
    ranks = sorted({f.scope.rank for f in counts if f.scope.rank is not None})
    who = f" of {len(ranks)} ranks" if len(ranks) > 1 else f" of rank {ranks[0]}" if ranks else ""
    name = evidence.text(GPU_NAME)
    steps = f"{number} {unit}{'' if number == 1 else 's'}" if unit != "window" else "one window without steps"
    return f"{steps}{who}" + (f" on {name}" if name else "")


def _an(unit: str) -> str:
    return f"an {unit}" if unit[0] in "aeiou" else f"a {unit}"


def _how_long(evidence: Evidence) -> str:
    traced_s = evidence.value(traced.TRACED_STEP)
    unit = evidence.text(traced.STEP_UNIT, "step")
    if traced_s != traced_s:  # recorded, and nothing traced
        usual = evidence.get(traced.STEP_TIME) if evidence.all(stages.ON_DEVICE) else None
        return f"{show(usual.number, Unit.SECOND)} {_an(unit)}" if usual is not None else ""
    text = f"{show(traced_s, Unit.SECOND)} {_an(unit)} while traced"
    clean = evidence.get(traced.CLEAN_STEP)
    if clean is not None:
        return f"{text}, {clean} clean"
    replayed = evidence.get(traced.REPLAYED_STEP)
    if replayed is None or replayed.number > (1 - NOTICED) * traced_s:
        return text
    told = f"{text}, about {show(replayed.number, Unit.SECOND)} clean"
    ledger = next((x for x in evidence.ledgers if x.clean_step_s is not None), None)
    if ledger is None or not ledger.ranges:
        return told
    low, high = (show(end, Unit.SECOND) for end in ledger.whole_ends_s)
    number, unit = low.rsplit(" ", 1)
    return f"{told} ({number if high.endswith(f' {unit}') else low} to {high})"
