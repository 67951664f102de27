"""Facts that decide alone: what the generic measures found, given a cause to speak for (`[[threshold]]` of its cause.toml).

Rules know their cause from many sides; a mail with two numbers shows one. Where no rule is clear, a part that takes a large
share of its whole, a member far behind the others or a time far above its floor names its cause by itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from stallwise.doctor.advice import advised
from stallwise.doctor.findings.diagnosis import Hypothesis
from stallwise.doctor.findings.finding import Finding, Reason
from stallwise.doctor.findings.rule import Rule
from stallwise.doctor.findings.symptom import Kind
from stallwise.doctor.symptoms import complaints
from stallwise.evidence.catalog import change, quantities
from stallwise.evidence.evidence import Evidence
from stallwise.evidence.fact import Fact
from stallwise.units import Unit, show

SURE = 0.82  # just clear: one number may be mistaken, and its reason may lie deeper
ODD = 0.55  # a size that tensor cores cannot load whole is slow for sure; whether that is what is felt, not
BEFORE = "before"


def past_threshold(evidence: Evidence, rules: tuple[Rule, ...]) -> tuple[Finding, ...]:
    """One finding for each cause that a single number names, the largest first."""
    by_cause = {r.cause: r for r in rules}
    best: dict[str, tuple[float, Reason]] = {}
    for cause, excess, reason in _exceeded(evidence, rules):
        if excess > best.get(cause, (0.0, reason))[0]:
            best[cause] = (excess, reason)
    found = sorted(best.items(), key=lambda item: -item[1][0])
    # Several parts of one whole may be large: the largest decides, the others are suspected.
    ranked_causes = [
        (cause, SURE if place == 0 else SURE / 2, reason) for place, (cause, (_, reason)) in enumerate(found)
    ]
    if not ranked_causes:
        ranked_causes = [(cause, ODD, reason) for cause, reason in _odd(evidence, rules)]
    return tuple(
        replace(advised(by_cause[cause], Hypothesis(cause, sure, (reason,)), evidence), confidence=sure)
        for cause, sure, reason in ranked_causes
    )


def _odd(evidence: Evidence, rules: tuple[Rule, ...]) -> Iterator[tuple[str, Reason]]:
    """Sizes that are no multiple of what the hardware loads at once, where somebody finds a run slow, or where it became so
    when the size did."""
    slow = [c for c in complaints(evidence) if c.symptom.kind is Kind.SPEED]
    if not slow:
        return
    by_person = any(c.by_person for c in slow)
    for cause, row in _rows(rules, "odd"):
        for name in row["of"]:
            fact, before = _now(evidence, name), evidence.get(quantities()[name], run=BEFORE)
            became = before is not None and not isinstance(before.value, str) and not before.number % row["multiple"]
            if fact is not None and fact.number % row["multiple"] and (by_person or became):
                yield cause, Reason.of(f"{_plain(name)} {fact} is no multiple of {row['multiple']}", fact)
                return


def _exceeded(evidence: Evidence, rules: tuple[Rule, ...]) -> Iterator[tuple[str, float, Reason]]:
    """Cause, how far above its limit, why."""
    for cause, row in _rows(rules, "part"):
        for fact in _of(evidence, change.PART_SHARE.name, row["of"]):
            name = _plain(fact.scope.layer or "")
            if fact.number > row["above"]:
                yield cause, fact.number / row["above"], Reason.of(f"{name} takes {fact} of its whole", fact)
    for cause, row in _rows(rules, "spread"):
        for fact in _of(evidence, change.SPREAD_RATIO.name, row["of"]):
            if fact.number > row["above"]:
                text = f"the slowest takes {fact} what the middle one does"
                yield cause, fact.number / row["above"], Reason.of(text, fact)
    for cause, row in _rows(rules, "value"):
        value = _now(evidence, row["of"])
        if value is not None and value.number > row["above"]:
            yield cause, value.number / row["above"], Reason.of(f"{_plain(row['of'])} is {value}", value)
    for cause, row in _rows(rules, "over"):
        top, bottom = _now(evidence, row["of"]), _now(evidence, row["against"])
        only = _now(evidence, row["only"]) if "only" in row else None
        if top is None or bottom is None or bottom.number <= 0:
            continue
        if "only" in row and (only is None or only.number > row["at_most"]):
            continue
        ratio = top.number / bottom.number
        if ratio > row["above"]:
            whole = row.get("whole") or "that it should take"
            text = f"{_plain(row['of'])} is {top}, {show(ratio, Unit.RATIO)} the {bottom} {whole}"
            if "floor" in row and (floor := _now(evidence, row["floor"])) is not None:
                text += f"; the floor is {floor} ({floor.quantity.meaning})"
            yield cause, ratio / row["above"], Reason.of(text, top, bottom)


def _of(evidence: Evidence, name: str, layers: list[str]) -> list[Fact]:
    return [f for f in evidence.facts.get(name, []) if f.scope.layer in layers and f.scope.run != BEFORE]


def _now(evidence: Evidence, name: str) -> Fact | None:
    fact = evidence.get(quantities()[name], run=None)
    return fact if fact is not None and not isinstance(fact.value, str) else None


def _plain(name: str) -> str:
    return name.rpartition(".")[2].replace("_", " ")


def _rows(rules: tuple[Rule, ...], kind: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Part of a whole, spread over members, a value as it is, one over another, or a size that is no multiple."""
    yield from ((rule.cause, row) for rule in rules for row in rule.thresholds if row["kind"] == kind)
