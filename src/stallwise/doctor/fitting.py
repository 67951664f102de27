"""The one filter that all advice passes: what the evidence says is not there is neither fixed nor captured (needs.toml).

Fixes, captures, warnings and the questions asked first go through it, whoever wrote them. What is kept is told in this job's own
words: its command for `python train.py`, its ranks for the usual eight.
"""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from stallwise.doctor.findings.diagnosis import Diagnosis, NextStep, State
from stallwise.doctor.findings.finding import Finding, Fix, Reason
from stallwise.doctor.presence import Presence, presence_in
from stallwise.evidence import capture
from stallwise.evidence.capture import Capture
from stallwise.evidence.ledger import Category, Ledger
from stallwise.tables import table

USUAL_COMMAND, USUAL_SCRIPT = "python train.py", "train.py"
LONGEST_COMMAND = 100  # characters: a longer one is told by its script
PROVED = 0.5  # what was seen so surely knows the job better than a presence under which no cure of it fits
USUAL_RANKS = 8  # of a node, in our own examples
# Asked for where nothing that was to be captured fits.
FALLBACK = (capture.SERVE_METRICS, capture.TORCH_TRACE, capture.PY_SPY, capture.STEP_SHAPE)
_RANKS = re.compile(r"(--nproc-per-node |-g )8\b")
_TRAIN = re.compile(r"(?<![\w/.-])(?:(python) )?train\.py\b")
# A number that is none, as Python writes it before a unit; people write NaN of losses without one.
_NO_NUMBER = re.compile(
    r"(?<![\w.])-?nan(?:[x%]|(?= (?:ns|us|ms|s|[kMGT]i?B|W|tokens?|tok|[GT]FLOP|GPUs?|requests?|of)\b))|\bmeasured unknown\b"
)


class Thing(NamedTuple):
    """What advice may speak of."""

    pattern: re.Pattern[str]
    needs: tuple[str, ...]
    given_by: frozenset[str]


def fitting(diagnosis: Diagnosis) -> Diagnosis:
    """The same answer with the advice that this job can follow."""
    present = presence_in(diagnosis.evidence)
    findings = tuple(_finding(f, present, diagnosis.ledger) for f in diagnosis.findings)
    steps = tuple(
        NextStep(_in_words_of_job(s.capture, present), s.separates, s.information_bits)
        for s in diagnosis.next
        if _is_open(s.capture, present)
    )
    line_known = any(f.code_line is not None for f in diagnosis.findings[:1])
    if diagnosis.next and not steps and diagnosis.state is not State.HEALTHY and not line_known:
        steps = tuple(NextStep(_in_words_of_job(c, present)) for c in FALLBACK if _is_open(c, present))[:1]
    limit = diagnosis.limit
    return replace(
        diagnosis,
        findings=findings,
        next=steps,
        unknown=tuple(replace(u, next=_captures(u.next, present)) for u in diagnosis.unknown),
        tree=tuple(
            _in_its_words(line, present) if fits(line, present) else _without_command(line) for line in diagnosis.tree
        ),
        proofs=tuple(replace(p, next=_captures(p.next, present)) for p in diagnosis.proofs),
        limit=replace(limit, levers=_fixes(limit.levers, present)) if limit is not None else None,
    )


def fits(text: str, present: Presence) -> bool:
    """Whether all that a piece of advice speaks of may be there."""
    return all(
        present.has(need) is not False for thing in things() for need in thing.needs if thing.pattern.search(text)
    )


def _finding(finding: Finding, present: Presence, ledger: Ledger | None) -> Finding:
    return replace(
        finding,
        because=_sound(finding.because),
        against=_sound(finding.against),
        not_here=_sound(finding.not_here),
        fixes=_fixes(finding.fixes, present) or (finding.fixes if finding.confidence >= PROVED else ()),
        avoid=_warning(finding, ledger),
        rivals=tuple(r for r in finding.rivals if fits(f"{r.less_likely} {r.check}", present)),
        overturn=tuple(_in_its_words(o, present) for o in finding.overturn if fits(o, present)),
        next=_captures(finding.next, present),
    )


def _fixes(fixes: tuple[Fix, ...], present: Presence) -> tuple[Fix, ...]:
    kept = (f for f in fixes if fits(f.action, present) and _NO_NUMBER.search(f.action) is None)
    return tuple(
        replace(f, action=_in_its_words(f.action, present), worth="" if _NO_NUMBER.search(f.worth) else f.worth)
        for f in kept
    )


def _sound(reasons: tuple[Reason, ...]) -> tuple[Reason, ...]:
    """Sentences without a number that is none."""
    return tuple(r for r in reasons if _NO_NUMBER.search(r.text) is None)


def _captures(captures: tuple[Capture, ...], present: Presence) -> tuple[Capture, ...]:
    return tuple(_in_words_of_job(c, present) for c in captures if _is_open(c, present))


def _is_open(wanted: Capture, present: Presence) -> bool:
    """Whether a capture can be made here and was not given yet."""
    text = f"{wanted.artifact}: {wanted.command}"
    given = any(thing.given_by & present.formats for thing in things() if thing.given_by and thing.pattern.search(text))
    return not given and fits(text, present)


def _in_words_of_job(wanted: Capture, present: Presence) -> Capture:
    command = _in_its_words(wanted.command, present)
    return replace(wanted, command=command) if command != wanted.command else wanted


def _in_its_words(text: str, present: Presence) -> str:
    """With this job's own command, script and number of ranks."""
    if present.rank_count is not None and 1 < present.rank_count < USUAL_RANKS:
        text = _RANKS.sub(rf"\g<1>{present.rank_count}", text)
    for word, own in _words_of(present.places):
        text = re.sub(rf"(?<![\w.-]){re.escape(word)}(?!\w)", own, text)
    if not present.script or USUAL_SCRIPT not in text:
        return text
    short = present.command if 0 < len(present.command) <= LONGEST_COMMAND else f"python {present.script}"
    return _TRAIN.sub(lambda m: short if m[1] else present.script, text)


@cache
def _words_of(places: str) -> tuple[tuple[str, str], ...]:
    """What the job's framework calls things."""
    frameworks = table(Path(__file__).with_name("framework_words.toml")).values()
    return next((tuple(f["words"].items()) for f in frameworks if re.search(f["seen"], places)), ())


def _without_command(line: str) -> str:
    """A question that nothing here can answer by that command: the question stays."""
    return re.sub(r"\s{0,8}\([^()]{0,400}\)(?=\.?$)", "", line)


def _warning(finding: Finding, ledger: Ledger | None) -> str:
    """ "Do not start with the model" is wrong where the model takes more of the step than what was found."""
    if ledger is None or not finding.avoid or finding.category is None:
        return finding.avoid
    own = ledger.share(finding.category)
    larger = (
        category
        for pattern, category in warnings()
        if pattern.search(finding.avoid) and category is not finding.category
    )
    return "" if any(ledger.share(category) > own for category in larger) else finding.avoid


@cache
def _table() -> dict[str, list[dict[str, Any]]]:
    return table(Path(__file__).with_name("needs.toml"))


@cache
def things() -> tuple[Thing, ...]:
    """What advice may speak of, with what it needs."""
    return tuple(
        Thing(re.compile(str(row["words"])), tuple(row.get("needs", ())), frozenset(row.get("given_by", ())))
        for row in _table()["thing"]
    )


@cache
def warnings() -> tuple[tuple[re.Pattern[str], Category], ...]:
    """What a warning speaks of, and the account in which it would show."""
    return tuple((re.compile(str(row["words"])), Category(row["account"])) for row in _table()["warning"])
