"""Budgets: written as people write limits, judged against what was seen, never silently ignored."""

from __future__ import annotations

import tomllib

import numpy as np
import pytest

from stallwise.doctor.findings.budget import judge, read_budgets
from stallwise.doctor.findings.diagnosis import Diagnosis, State
from stallwise.doctor.findings.finding import Finding, Gain
from stallwise.doctor.findings.threshold import threshold
from stallwise.errors import BadRequest
from stallwise.evidence.catalog import memory, run, serving
from stallwise.evidence.evidence import Evidence
from stallwise.evidence.fact import Fact, Scope, Series, Source
from stallwise.evidence.ledger import Category, Ledger

SOURCE = Source("trace.json")


def diagnosis() -> Diagnosis:
    evidence = Evidence()
    ledger = Ledger({Category.COMPUTE: 0.08, Category.COMMUNICATION: 0.02}, SOURCE)
    late = Ledger({Category.COMPUTE: 0.06, Category.COMMUNICATION: 0.04}, SOURCE, Scope(rank=3))
    evidence.add(
        [
            ledger,
            late,
            Series(run.STEP_TIME, np.arange(5.0), np.array([0.1, 0.1, 0.1, 0.1, 3.0]), SOURCE),
            Fact(memory.PEAK, 70e9, SOURCE),
            Fact(serving.TTFT, 0.6, SOURCE),
            Fact(run.MFU, 0.35, SOURCE),
        ]
    )
    finding = Finding("late", 0.9, (), cause="exposed-communication", gain=Gain(0.01, 0.02, "x"))
    return Diagnosis("x", State.SICK, ("exposed-communication",), (finding,), ledger, evidence)


def verdict_of(text: str) -> tuple[bool, float | None]:
    budgets = read_budgets(tomllib.loads(f"[budgets]\n{text}"))
    found = judge(budgets, diagnosis())
    return any(v.broken for v in found), found[0].seen


@pytest.mark.parametrize(
    ("text", "broken", "seen"),
    [
        ('step_time = "130ms"', False, 0.1),  # the step of the diagnosis: its ledger, not one slow step of the log
        ('step_time = "90ms"', True, 0.1),
        ('step_time = 0.09', True, 0.1),
        ('exposed_communication = "30%"', True, 0.4),  # the worst rank counts
        ('exposed_communication = "50%"', False, 0.4),
        ('"exposed communication" = "30ms"', True, 0.04),
        ('peak_memory = "75GB"', False, 70e9),
        ('peak_memory = "64GiB"', True, 70e9),
        ('ttft = "500ms"', True, 0.6),
        ('mfu = ">= 40%"', True, 0.35),
        ('mfu = ">=30%"', False, 0.35),
        ('mfu = {min = "30%", max = "34%"}', True, 0.35),
        ('tpot = "40ms"', False, None),
    ],
)  # fmt: skip
def test_a_budget_is_kept_or_broken(text: str, broken: bool, seen: float | None) -> None:
    assert verdict_of(text) == (broken, pytest.approx(seen) if seen is not None else None)


@pytest.mark.parametrize(
    "text",
    ['step_tiem = "1s"', "step_time = true", 'step_time = "fast"', "mfu = {most = 1}", "mfu = {}",
     'gpu = "h100"', "mfu = nan", "step_time = []"]
)  # fmt: skip
def test_a_budget_that_makes_no_sense_is_said(text: str) -> None:
    with pytest.raises(BadRequest) as error:
        read_budgets(tomllib.loads(f"[budgets]\n{text}"))
    assert error.value.hint


def test_a_budget_knows_its_line() -> None:
    text = '# limits\n[budgets]\nstep_time = "1s"\nttft = "500ms"\n'
    assert [b.line for b in read_budgets(tomllib.loads(text), text)] == [3, 4]


KNOWN = frozenset({"exposed-communication", "input-starved"})


@pytest.mark.parametrize(
    ("wanted", "fails"),
    [("any", True), ("exposed-communication", True), ("input-starved", False), ("9%", True), ("15%", False),
     ("input-starved, 5%", True)],
)  # fmt: skip
def test_fail_on(wanted: str, fails: bool) -> None:
    assert bool(threshold(wanted, KNOWN).reached(diagnosis())) is fails


@pytest.mark.parametrize("wanted", [",", "", "nosuch", "any, input-straved", "5 parsecs", "nan", "-3%"])
def test_fail_on_what_nobody_knows_is_refused_with_what_is_accepted(wanted: str) -> None:
    with pytest.raises(BadRequest) as error:
        threshold(wanted, KNOWN)
    assert error.value.hint
    if "straved" in wanted:
        assert "input-starved;" in error.value.hint and "any, unclear" in error.value.hint


def test_the_step_of_a_check_is_the_step_of_the_diagnosis() -> None:
    """A record whose usual step is 53 ms and whose mean step, of which the ledger tells every second, is 63.8 ms."""
    told = diagnosis()
    ledger = Ledger({Category.COMPUTE: 0.004, Category.INPUT_WAIT: 0.0598}, SOURCE)
    told.evidence.add([ledger, Series(run.STEP_TIME, np.arange(5.0), np.full(5, 0.053), SOURCE)])
    whole = Diagnosis("x", State.SICK, told.ranked, told.findings, ledger, told.evidence)
    seen = judge(read_budgets(tomllib.loads('[budgets]\nstep_time = "60ms"')), whole)[0]
    assert seen.broken and seen.seen == pytest.approx(0.0638) and "step_time is 63.8 ms" in seen.says
