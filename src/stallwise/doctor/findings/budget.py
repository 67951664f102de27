"""Budgets: limits that a run must keep, written in stallwise.toml and checked by `stallwise check`.

A budget names an account of the ledger ("exposed communication"), or any quantity in the words of `stallwise facts`.
A bare value is the most that is allowed; ">= 40%" and {min = "40%"} the least. For accounts, a share means a share of
the step.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from stallwise.doctor.findings.diagnosis import Diagnosis
from stallwise.errors import BadRequest
from stallwise.evidence import vocabulary
from stallwise.evidence.catalog import quantities
from stallwise.evidence.evidence import Evidence
from stallwise.evidence.fact import Fact
from stallwise.evidence.ledger import Category, Ledger
from stallwise.evidence.quantity import Quantity
from stallwise.units import Unit, parse, show

STEP_TIME = "step_time"
# A word may be answered by several artifacts; the first that is there counts. A log's step time is not slowed by a profiler.
ANSWERED_BY = {
    STEP_TIME: ("run.step_time", "step.time"),
    "peak_memory": ("memory.peak", "memory.reserved", "run.peak_memory", "gpu.memory_used"),
    "ttft": ("serve.ttft",),
    "ttft_p99": ("serve.ttft_tail",),
    "tpot": ("serve.tpot",),
    "tpot_p99": ("serve.tpot_tail",),
}
_CATEGORIES = {a.value.replace(" ", "_"): a for a in Category}
_LEAST = re.compile(r"^\s*(>=|<=|>|<|≥|≤)\s*(.+)$")


@dataclass(frozen=True, slots=True)
class Budget:
    """One limit."""

    name: str
    limit: float
    unit: Unit
    least: bool  # True: the value must not fall below; False: it must not exceed
    text: str  # as a person reads it
    line: int = 1  # in the settings, for annotations


@dataclass(frozen=True, slots=True)
class Verdict:
    """A budget against what was seen."""

    budget: Budget
    seen: float | None
    broken: bool
    says: str
    source: str = ""

    @property
    def seen_text(self) -> str:
        """What was seen, for people."""
        return "nothing" if self.seen is None else show(self.seen, self.budget.unit)


def read_budgets(settings: Mapping[str, Any], text: str = "") -> list[Budget]:
    """The [budgets] of a settings file; `text` gives the lines."""
    table = settings.get("budgets", {})
    if not isinstance(table, Mapping):
        raise BadRequest("[budgets] must be a table", hint='[budgets]\nstep_time = "130ms"')
    return [b for name, value in table.items() for b in _budgets(str(name), value, _line(text, str(name)))]


def _line(text: str, name: str) -> int:
    found = re.search(rf"^\s*[\"']?{re.escape(name)}[\"']?\s*=", text, re.M)
    return text.count("\n", 0, found.start()) + 1 + found[0].lstrip(" \t").count("\n") if found else 1


def _budgets(name: str, value: Any, line: int) -> list[Budget]:
    if isinstance(value, Mapping):
        odd = set(value) - {"min", "max"}
        if odd or not value:
            raise BadRequest(f"budget {name}: write min, max or both", hint=f'{name} = {{max = "10%"}}')
        return [_budget(name, value[key], key == "min", line) for key in ("max", "min") if key in value]
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        raise BadRequest(f"budget {name}: '{value}' is not a limit", hint=f'{name} = "130ms"')
    least = False
    if isinstance(value, str) and (match := _LEAST.match(value)):
        least, value = match[1] in (">=", ">", "≥"), match[2]
    return [_budget(name, value, least, line)]


def _budget(name: str, value: Any, least: bool, line: int) -> Budget:
    unit = _unit(name, value)
    try:
        limit = parse(value, unit)
    except BadRequest as error:
        raise BadRequest(f"budget {name}: {error.problem}", hint=error.hint) from error
    if limit != limit:
        raise BadRequest(f"budget {name}: '{value}' is not a limit", hint=f'{name} = "130ms"')
    word = "at least" if least else "at most"
    return Budget(name, limit, unit, least, f"{word} {show(limit, unit)}", line)


def _unit(name: str, value: Any) -> Unit:
    if _key(name) in _CATEGORIES:
        return Unit.SHARE if isinstance(value, str) and value.rstrip().endswith("%") else Unit.SECOND
    quantity = _quantities(name)[0]
    if quantity.unit in (Unit.TEXT, Unit.FLAG):
        raise BadRequest(f"budget {name}: it is not a number", hint="stallwise facts lists what can be limited")
    return quantity.unit


def _key(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_")


def _quantities(name: str) -> list[Quantity]:
    named = [quantities()[q] for q in ANSWERED_BY.get(_key(name), ()) if q in quantities()]
    if named:
        return named
    found = vocabulary.find(name)
    if found is None:
        close = [*vocabulary.suggestions(name), *(a for a in _CATEGORIES if _key(name)[:5] == a[:5])]
        hint = f"did you mean {' or '.join(close[:3])}?" if close else "stallwise facts lists the words"
        raise BadRequest(f"no budget is called '{name}'", hint=hint)
    return [found]


def judge(budgets: list[Budget], diagnosis: Diagnosis) -> list[Verdict]:
    """Each budget kept, broken or unknown."""
    return [_judged(b, diagnosis) for b in budgets]


def _judged(budget: Budget, diagnosis: Diagnosis) -> Verdict:
    seen, source = _seen(budget, diagnosis)
    if seen is None:
        return Verdict(budget, None, False, f"{budget.name}: nothing here tells it")
    broken = seen < budget.limit if budget.least else seen > budget.limit
    off = abs(seen / budget.limit - 1.0) if budget.limit else float("inf")
    tail = f", {off:.0%} {'under' if budget.least else 'over'}" if broken and off < 10 else ""
    return Verdict(budget, seen, broken, f"{budget.name} is {show(seen, budget.unit)}, {budget.text}{tail}", source)


def _seen(budget: Budget, diagnosis: Diagnosis) -> tuple[float | None, str]:
    category = _CATEGORIES.get(_key(budget.name))
    if category is not None:
        return _worst_rank(category, budget, diagnosis)
    ledger = diagnosis.ledger
    if _key(budget.name) == STEP_TIME and ledger is not None and ledger.unit == "step":
        return ledger.whole_s, str(ledger.source)  # the step that the diagnosis tells
    for quantity in _quantities(budget.name):
        facts = [f for f in diagnosis.evidence.all(quantity) if f.number == f.number]
        if facts:
            worst = _worst(facts, budget.least)
            return worst.number, str(worst.source)
        if (found := _median(quantity, diagnosis.evidence)) is not None:
            return found
    return None, ""


def _worst(facts: list[Fact], least: bool) -> Fact:
    """Of many ranks or cards the one that breaks the budget first; a measured fact before a stated one."""
    measured = [f for f in facts if not f.stated] or facts
    return (min if least else max)(measured, key=lambda f: f.number)


def _median(quantity: Quantity, evidence: Evidence) -> tuple[float, str] | None:
    for series in evidence.series(quantity):
        values = series.values[np.isfinite(series.values)]
        if len(values):
            return float(np.median(values)), str(series.source)
    return None


def _worst_rank(category: Category, budget: Budget, diagnosis: Diagnosis) -> tuple[float | None, str]:
    ledgers = diagnosis.evidence.ledgers or ([diagnosis.ledger] if diagnosis.ledger else [])
    if not ledgers:
        return None, ""

    def value(ledger: Ledger) -> float:
        return ledger.share(category) if budget.unit is Unit.SHARE else ledger.seconds.get(category, 0.0)

    worst = (min if budget.least else max)(ledgers, key=value)
    return value(worst), f"{worst.source} {worst.scope}".strip()
