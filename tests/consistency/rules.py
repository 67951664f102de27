"""What must hold between the numbers of one answer. Each rule yields sentences about what does not."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator
from typing import Any

from stallwise.doctor.findings.diagnosis import State
from stallwise.doctor.findings.finding import Finding, Gain
from stallwise.evidence.step_time import STEPS
from stallwise.render.colours import guilty
from stallwise.render.phrases import gain_range
from stallwise.render.verdict import ENDED, leading_hypothesis, run_findings, verdict
from stallwise.units import Unit, parse, show
from tests.consistency.forms import Forms

ROUNDING = 1.001  # numbers are shown with three digits
SHOWN_DIGITS = 1.006  # three digits: 1.00 may be 1.005
TINY_S = 1e-9
SIZES = (Unit.SECOND, Unit.BYTE, Unit.BYTE_PER_S, Unit.FLOP_PER_S)  # none of these is ever below nothing
FACTS = "Every number and where it comes from"  # heads the page's table of facts, some of which have a sign
LEFT_OVER = "something-else"
TIME = r"\d[\d.,]*(?:e-?\d+)? (?:ns|us|ms|s|min|h|d)\b"
_OF_EVERY = re.compile(rf"of every ({TIME})")
_SUBJECT = re.compile(rf"({TIME}) an? (?:{'|'.join(STEPS)})\b")
_PART = re.compile(rf"(?:\bidles|\bwaits\b[^:]*:) ({TIME}) of every \d")
_DASHED = re.compile(rf"Dashed: .*?(?:replayed|at best) ({TIME})")
_WHOLE = re.compile(rf"Where an? (?:{'|'.join(STEPS)}) goes: ({TIME})")
_NOT_A_NUMBER = re.compile(r"\bnan(?:x|%|\b(?= ?(?:[mun]?s|[kMGT]?i?B|x|%|steps?)\b))|\binf(?:x|%| [mun]?s\b)")
_NEGATIVE = re.compile(rf"(?<![\w.,)%/:=\[-])-{TIME}|(?<![\w.,)%/:=\[-])-\d[\d.,]*(?:%| [kMGT]?i?B\b)")
_QUOTED = re.compile(r"\"[^\"]*\"|`[^`]*`")

Rule = Callable[[Forms], Iterator[str]]


def one_step_time(forms: Forms) -> Iterator[str]:
    """Headline, ledger, what-if, subject and JSON tell the clean step and no other."""
    ledger = forms.diagnosis.ledger
    if ledger is None or ledger.unit not in STEPS:
        return
    step = show(ledger.whole_s, Unit.SECOND)
    for form, words in forms.words.items():
        for expression in (_OF_EVERY, _WHOLE):
            yield from (
                f"{form}: a step of {s}, the ledger's is {step}" for s in expression.findall(words) if s != step
            )
    yield from (
        f"the subject tells {s}, the ledger {step}" for s in _SUBJECT.findall(forms.diagnosis.subject) if s != step
    )
    told = forms.data["ledger"]
    for key in ("whole_s", "clean_step_s"):
        if told[key] is not None and not math.isclose(told[key], told["step_s"], rel_tol=1e-6):
            yield f"json: {key} is {told[key]:.6g}, step_s is {told['step_s']:.6g}"
    if not math.isclose(sum(told["accounts"].values()), told["step_s"], rel_tol=1e-6):
        yield f"json: the accounts sum to {sum(told['accounts'].values()):.6g}, step_s is {told['step_s']:.6g}"
    for table in forms.diagnosis.evidence.table("replayed_together")[-1:]:
        now = float(table.columns["step_s"][0])
        ranks = {x.scope for x in forms.diagnosis.evidence.table("replayed_together")}
        if len(ranks) == 1 and show(now, Unit.SECOND) != step:
            yield f"what-if begins at {show(now, Unit.SECOND)}, the ledger's step is {step}"
        low = float(table.columns["step_s"].min())
        if not 0 < low <= now * ROUNDING:
            yield f"what-if leaves {low:.6g} s of {now:.6g} s"


def gains_within_what_they_remove(forms: Forms) -> Iterator[str]:
    """0 <= low <= likely <= high <= account + what is told to lie outside <= step; fixes win no more than their finding."""
    ledger = forms.diagnosis.ledger
    for finding in forms.diagnosis.findings:
        kernel = finding.scope.kernel is not None
        for what, gain in (("worth", finding.gain), ("predicted", finding.predicted)):
            if gain is None:
                continue
            yield from (f"{finding.cause} {what}: {problem}" for problem in _ordered(gain))
            if ledger is None or kernel:
                continue
            if finding.category is not None and not _fits(
                gain.high_s - gain.beside_s, ledger.seconds.get(finding.category, 0.0)
            ):
                held = show(ledger.seconds.get(finding.category, 0.0), Unit.SECOND)
                yield f"{finding.cause} {what} {gain_range(gain)}, {finding.category.value} holds {held}"
            if not _fits(gain.high_s, ledger.whole_s):
                yield f"{finding.cause} {what} {gain_range(gain)} of {show(ledger.whole_s, Unit.SECOND)}"
        yield from _of_its_fixes(finding)


def _ordered(gain: Gain) -> Iterator[str]:
    likely = gain.high_s if gain.likely_s is None else gain.likely_s
    if not (0 <= gain.low_s <= likely * ROUNDING + TINY_S and likely <= gain.high_s * ROUNDING + TINY_S):
        yield f"out of order: {gain.low_s:.6g} <= {likely:.6g} <= {gain.high_s:.6g}"
    if gain.beside_s < 0:
        yield f"{gain.beside_s:.6g} s come from other accounts"


def _of_its_fixes(finding: Finding) -> Iterator[str]:
    for fix in finding.fixes:
        if fix.gain is None:
            continue
        yield from (f"{finding.cause}, fix '{fix.action}': {problem}" for problem in _ordered(fix.gain))
        if finding.gain is not None and not _fits(fix.gain.high_s, finding.gain.high_s):
            yield f"{finding.cause}: the fix '{fix.action}' wins {gain_range(fix.gain)} of {gain_range(finding.gain)}"


def _fits(part_s: float, whole_s: float) -> bool:
    return part_s <= whole_s * ROUNDING + TINY_S


def amounts_within_their_category(forms: Forms) -> Iterator[str]:
    """A headline that tells how long the device idles or waits tells no more than the ledger has of it."""
    ledger = forms.diagnosis.ledger
    if ledger is None or ledger.unit not in STEPS:
        return
    for finding in run_findings(forms.diagnosis):
        for amount in _PART.findall(finding.headline):
            part_s = parse(amount, Unit.SECOND)
            held_s = ledger.seconds.get(finding.category, 0.0) if finding.category is not None else ledger.whole_s
            if not _fits(part_s, held_s * SHOWN_DIGITS):
                yield f"{finding.cause} tells {amount}, the ledger has {show(held_s, Unit.SECOND)}"


def dashed_line_is_the_replayed_step(forms: Forms) -> Iterator[str]:
    """The step after the first fix, as the page draws it, is the step less what the replay won."""
    ledger, found = forms.diagnosis.ledger, guilty(forms.diagnosis)
    drawn = _DASHED.search(forms.words["html"])
    if drawn is None or ledger is None or found is None or found.gain is None:
        return
    left_s = ledger.whole_s - found.gain.expected_s
    if drawn[1] != show(left_s, Unit.SECOND):
        yield f"the page draws {drawn[1]}, the step less its gain is {show(left_s, Unit.SECOND)}"
    stays_s = ledger.whole_s - ledger.seconds.get(found.category, 0.0) - found.gain.beside_s if found.category else 0.0
    if not _fits(stays_s, left_s):
        yield f"the page draws {drawn[1]}, less than the {show(stays_s, Unit.SECOND)} of other accounts that stay"


def ranges_in_order(forms: Forms) -> Iterator[str]:
    """Every range holds its own value and lies inside its whole."""
    ledger = forms.diagnosis.ledger
    if ledger is not None:
        low, high = ledger.whole_ends_s
        if not (low <= ledger.whole_s * ROUNDING and _fits(ledger.whole_s, high)):
            yield f"the step of {ledger.whole_s:.6g} s lies outside of {low:.6g} to {high:.6g}"
        for category, (low, high) in ledger.ranges.items():
            held = ledger.seconds.get(category, 0.0)
            if not (0 <= low <= held * ROUNDING and _fits(held, high) and _fits(high, ledger.whole_s)):
                yield f"{category.value}: {held:.6g} of {low:.6g} to {high:.6g}, the step is {ledger.whole_s:.6g}"
    for facts in forms.diagnosis.evidence.facts.values():
        for fact in facts:
            if isinstance(fact.value, str) or fact.low is None or fact.high is None:
                continue
            if not fact.low <= fact.high:
                yield f"{fact.quantity.name} lies between {fact.low:.6g} and {fact.high:.6g} ({fact.source})"


def shares_of_one_whole(forms: Forms) -> Iterator[str]:
    """Accounts and stretches are no more than all; causes that are only suspected share what the surest found one leaves."""
    ledger = forms.diagnosis.ledger
    if ledger is not None:
        yield from (f"{a.value} holds {s:.6g} s" for a, s in ledger.seconds.items() if not s >= -TINY_S)
    table = forms.diagnosis.hypotheses
    found = max((h.probability for h in table if h.found), default=0.0)
    total = found + math.fsum(h.probability for h in table if not h.found)
    if total > ROUNDING:
        rows = ", ".join(f"{h.cause} {h.probability:.0%}" for h in table if not h.found)
        yield f"suspected causes and the surest found one ({found:.0%}) add up to {total:.0%}: {rows}"
    yield from (f"{h.cause} has a probability of {h.probability}" for h in table if not 0 <= h.probability <= 1)
    for name, rows_of in forms.data.get("tables", {}).items():
        shares = [row["share"] for row in rows_of["rows"] if row.get("share") is not None]
        if math.fsum(shares) > ROUNDING:
            yield f"the shares of the table of {name} add up to {math.fsum(shares):.0%}"


def headline_is_the_first_row(forms: Forms) -> Iterator[str]:
    """What is said above everything is the first finding, the first of the ranking and the first row of the table."""
    diagnosis = forms.diagnosis
    run = run_findings(diagnosis)
    table = [h for h in diagnosis.hypotheses if h.cause != LEFT_OVER]
    if diagnosis.state is State.SICK:
        first = run[0]
        if diagnosis.ranked[0] != first.cause:
            yield f"the headline is {first.cause}, the ranking begins with {diagnosis.ranked[0]}"
        if table and table[0].cause != first.cause:
            yield f"the headline is {first.cause}, the table begins with {table[0].cause}"
        row = next((h for h in table if h.cause == first.cause), None)
        if row is not None and f"{row.probability:.0%}" != f"{first.confidence:.0%}":
            yield f"the headline is {first.confidence:.0%} sure, its row says {row.probability:.0%}"
        if forms.data["findings"][0]["cause"] != first.cause:
            yield f"json begins with {forms.data['findings'][0]['cause']}, the headline is {first.cause}"
    elif diagnosis.state is State.UNCLEAR and (leading := leading_hypothesis(diagnosis)) is not None and table:
        quoted = verdict(diagnosis).voice == ENDED  # the program's own last error stands above what may have led to it
        if not quoted and f" {table[0].cause} (" not in verdict(diagnosis).what:
            yield f"the table begins with {table[0].cause}, the headline is '{verdict(diagnosis).what}' ({leading.cause})"
    elif diagnosis.state is State.HEALTHY and diagnosis.ranked[0] != "none":
        yield f"healthy, and the ranking begins with {diagnosis.ranked[0]}"


def same_in_all_forms(forms: Forms) -> Iterator[str]:
    """Verdict, reasons, accounts and gains stand in text, page and Markdown with the same figures, and JSON has their source."""
    diagnosis = forms.diagnosis
    run = run_findings(diagnosis)
    wanted = [verdict(diagnosis).what]
    argued = diagnosis.state is State.SICK  # an undecided answer is short in a terminal, and whole elsewhere
    if diagnosis.state is State.SICK:
        wanted = [run[0].headline]
    if argued:
        wanted += [reason.text for reason in run[0].because]
        wanted += [gain_range(fix.gain) for fix in run[0].fixes if fix.gain is not None and fix.gain.high_s > 0]
    if diagnosis.state is State.SICK and run[0].gain is not None and run[0].gain.high_s > 0:
        wanted.append(gain_range(run[0].gain))
    if diagnosis.ledger is not None and diagnosis.ledger.whole_s > 0:
        seen = [s for s in diagnosis.ledger.seconds.values() if s > 0.01 * diagnosis.ledger.whole_s]
        wanted += [show(s, Unit.SECOND) for s in seen]
    for sentence in wanted:
        flat = " ".join(sentence.split())
        yield from (f"{form} lacks '{flat}'" for form, words in forms.words.items() if flat not in words)
    for finding, told in zip(run, forms.data["findings"], strict=True):
        if finding.headline != told["headline"] or not math.isclose(finding.confidence, told["confidence"]):
            yield f"json tells {told['headline']}, {told['confidence']:.2f} for {finding.headline}, {finding.confidence:.2f}"
        if finding.gain is not None and (told["gain"]["low_s"], told["gain"]["high_s"]) != (
            finding.gain.low_s,
            finding.gain.high_s,
        ):
            yield f"json tells a gain of {told['gain']} for {gain_range(finding.gain)}"


def numbers_that_are_none(forms: Forms) -> Iterator[str]:
    """No NaN, no endless number, no placeholder for one, and nothing left over that is less than nothing."""
    for form, words in forms.words.items():
        own = _QUOTED.sub(" ", words.partition(FACTS)[0])
        for expression, what in ((_NOT_A_NUMBER, "no number"), (_NEGATIVE, "less than nothing")):
            for found in expression.finditer(own):
                yield f"{form}: {what}: '{own[max(found.start() - 60, 0) : found.end() + 20]}'"
    for fact in (f for facts in forms.diagnosis.evidence.facts.values() for f in facts):
        if not isinstance(fact.value, str) and fact.quantity.unit in SIZES and fact.number < 0:
            yield f"less than nothing: {fact.quantity.name} is {fact} ({fact.source} {fact.scope})"
    yield from (
        f"a sentence says 'unknown': {s}" for s in _sentences(forms) if re.search(r"\bunknown\b", _QUOTED.sub("", s))
    )
    try:
        json.dumps(forms.data, allow_nan=False, default=str)
    except ValueError:
        yield f"json: {_not_finite(forms.data)} is no finite number"


def _sentences(forms: Forms) -> Iterator[str]:
    """What we say ourselves; lines of the user's logs are quoted as they are."""
    answer = verdict(forms.diagnosis)
    yield from (answer.what, answer.why, answer.do, forms.diagnosis.subject, *forms.diagnosis.tree)
    for finding in forms.diagnosis.findings:
        yield from (finding.headline, finding.summary, finding.avoid, *(r.text for r in finding.because))
        yield from (part for fix in finding.fixes for part in (fix.action, fix.worth, fix.cost))
    yield from (part for proof in forms.diagnosis.proofs for part in (proof.says, proof.lacks))
    yield from (u.what for u in (*forms.diagnosis.unexplained, *forms.diagnosis.not_understood.time))


def _not_finite(value: Any, where: str = "") -> str:
    """The first place of a tree with such a number."""
    if isinstance(value, float) and not math.isfinite(value):
        return where or "the answer"
    parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return next((found for key, part in parts if (found := _not_finite(part, f"{where}.{key}"))), "")


RULES: tuple[Rule, ...] = (
    one_step_time,
    gains_within_what_they_remove,
    amounts_within_their_category,
    dashed_line_is_the_replayed_step,
    ranges_in_order,
    shares_of_one_whole,
    headline_is_the_first_row,
    same_in_all_forms,
    numbers_that_are_none,
)


def problems(forms: Forms) -> list[str]:
    """Everything that does not hold, each with the rule that it breaks."""
    return [f"{rule.__name__.replace('_', ' ')}: {problem}" for rule in RULES for problem in dict.fromkeys(rule(forms))]
