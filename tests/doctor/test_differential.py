"""Probabilities are probabilities, whatever the rules say."""

from __future__ import annotations

import math
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stallwise.doctor.differential import SOMETHING_ELSE, differential
from stallwise.doctor.next_step import entropy, information, next_steps
from stallwise.doctor.stating import state
from stallwise.evidence.capture import NVIDIA_SMI
from stallwise.evidence.catalog import run, stated
from stallwise.evidence.evidence import Evidence
from stallwise.findings.clue import Clue, Tells, above, below, grew, over, says_one_of, yes
from stallwise.findings.finding import Finding, Reason
from stallwise.findings.rule import Rule
from stallwise.findings.symptom import Symptom


def a_rule(cause: str, rate: float, *clues: Clue) -> Rule:
    return Rule(cause, "step", lambda e: None, (), None, "", {Symptom.HANG: rate}, clues)


def hung(*words: str) -> Evidence:
    evidence = Evidence()
    state(evidence, ["symptom=hang", *words])
    return evidence


rates = st.floats(0.01, 0.95)
words = st.sampled_from(get_args(Tells))


@given(st.lists(st.tuples(rates, words), min_size=1, max_size=8), st.booleans())
def test_probabilities_sum_to_one(table: list[tuple[float, Tells]], throttled: bool) -> None:
    rules = [a_rule(f"c{i}", p, yes(stated.THROTTLED, word, "x")) for i, (p, word) in enumerate(table)]
    hypotheses, heard = differential(hung(f"throttled={'yes' if throttled else 'no'}"), rules, ())
    assert [c.symptom for c in heard] == [Symptom.HANG]
    assert math.isclose(sum(h.probability for h in hypotheses), 1.0, abs_tol=1e-9)
    assert all(0.0 <= h.probability <= 1.0 for h in hypotheses)
    assert SOMETHING_ELSE in {h.cause for h in hypotheses}
    assert [h.probability for h in hypotheses] == sorted((h.probability for h in hypotheses), reverse=True)


@given(
    rates,
    st.sampled_from(
        [w for w in get_args(Tells) if "when seen" not in w and w not in ("against", "required", "forbids")]
    ),
)
def test_evidence_for_a_cause_raises_it_and_evidence_against_lowers_it(rate: float, word: Tells) -> None:
    clue = yes(stated.THROTTLED, word, "it throttles", "it does not")
    rules = [a_rule("hot", rate, clue), a_rule("other", 0.2)]
    start, up, down = (
        {h.cause: h.probability for h in differential(hung(*words), rules, ())[0]}.get("hot", 0.0)
        for words in ((), ("throttled=yes",), ("throttled=no",))
    )
    assert down < start < up


def test_base_rates_alone_put_the_boring_answer_first() -> None:
    hypotheses, _ = differential(hung(), [a_rule("exotic", 0.1), a_rule("boring", 0.5)], ())
    assert [h.cause for h in hypotheses][:2] == ["boring", SOMETHING_ELSE]
    assert math.isclose(hypotheses[0].probability, 0.5)


def test_one_finding_alone_keeps_its_own_confidence() -> None:
    finding = Finding("seen", 0.9, (Reason("there"),), cause="boring")
    hypotheses, _ = differential(Evidence(), [a_rule("boring", 0.5)], [finding])
    assert hypotheses[0].cause == "boring"
    assert hypotheses[0].probability == pytest.approx(0.9, abs=0.01)


def test_an_optional_finding_is_no_hypothesis() -> None:
    finding = Finding("could be faster", 0.9, (), cause="boring", optional=True)
    assert differential(Evidence(), [a_rule("boring", 0.5)], [finding])[0] == ()


def test_a_silent_rule_counts_against_its_cause() -> None:
    rules = [a_rule("a", 0.3), a_rule("b", 0.3)]
    hypotheses, _ = differential(hung(), rules, (), frozenset({"a"}))
    by_cause = {h.cause: h for h in hypotheses}
    assert by_cause["a"].probability < by_cause["b"].probability
    assert by_cause["a"].against


def test_without_a_complaint_only_a_telling_clue_opens_a_hypothesis() -> None:
    evidence = Evidence()
    state(evidence, ["throttled=yes"])
    assert differential(evidence, [a_rule("weak", 0.5, yes(stated.THROTTLED, "hint", "x"))], ())[0] == ()
    strong = differential(evidence, [a_rule("strong", 0.5, yes(stated.THROTTLED, "decisive", "x"))], ())[0]
    assert strong[0].cause == "strong" and strong[0].probability > 0.5


@given(st.floats(0.01, 0.99), st.floats(0.0, 1.0), st.floats(0.0, 1.0))
def test_information_is_between_nothing_and_the_whole_question(p: float, under: float, other: float) -> None:
    bits = information(p, under, other)
    assert 0.0 <= bits <= entropy((p, 1 - p)) + 1e-9


def test_the_next_artifact_is_the_one_that_tells_most() -> None:
    rules = [
        a_rule("hot", 0.4, yes(stated.THROTTLED, "decisive, needed", "x")),
        a_rule("late", 0.4, above(stated.SLOW_RANK_RATIO, 1.1, "hint", "x")),
    ]
    hypotheses, _ = differential(hung(), rules, ())
    steps = next_steps(hypotheses, rules, hung())
    assert steps[0].capture is NVIDIA_SMI
    assert steps[0].separates[0] == "hot"
    assert steps[0].information_bits > steps[1].information_bits
    known = hung("throttled=yes", "slow_rank_ratio=2")
    assert next_steps(differential(known, rules, ())[0], rules, known) == ()


def test_clues_read_what_they_say() -> None:
    evidence = Evidence()
    state(evidence, ["mfu=22%", "mfu.before=48%", "gpus=512", "changed=nothing at all", "dp=16", "tp=8"])
    assert below(run.MFU, 0.3, "hint", "low").outcome(evidence) is True
    rose = grew(run.MFU, 1.0, "hint", "rose", "fell")
    assert rose.outcome(evidence) is False and rose.sentence(False) == "fell"
    assert says_one_of(stated.CHANGED, ("nothing",), "fair", "calm").outcome(evidence) is True
    assert over(stated.DP, stated.TP, 1.5, "fair", "wide").outcome(evidence) is True
    assert yes(stated.THROTTLED, "hint", "x").outcome(evidence) is None


def test_what_definition_rules_out_no_count_brings_back() -> None:
    excluded: tuple[tuple[Tells, str], ...] = (("forbids", "yes"), ("required", "no"))
    for word, throttled in excluded:
        rules = [a_rule("cannot be", 0.3, yes(stated.THROTTLED, word, "x")), a_rule("other", 0.2)]
        hypotheses, _ = differential(hung(f"throttled={throttled}"), rules, ())
        assert {h.cause: h.probability for h in hypotheses}.get("cannot be", 0.0) < 0.02
