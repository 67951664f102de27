"""The classifier: weights load, probabilities are shares, what cannot be has none, and its reasons are the user's own lines."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stallwise.causes import all_rules
from stallwise.doctor.examine import diagnose
from stallwise.doctor.findings.clue import AGAINST_CAUSE, WHEN_SEEN
from stallwise.doctor.findings.diagnosis import SOMETHING_ELSE
from stallwise.doctor.findings.finding import Finding
from stallwise.doctor.gather import gather
from stallwise.doctor.measures import measure_evidence
from stallwise.doctor.recognise import Ranking, recognise
from stallwise.doctor.recognise.model import model, probabilities, recalibrated, set_costs
from stallwise.doctor.recognise.ranking import clue_key, of_our_trade, rule_odds
from stallwise.doctor.stating import state
from stallwise.doctor.words import bag_of
from stallwise.evidence.evidence import Evidence

WAITS = "The GPU is idle while the dataloader decodes JPEG images, more num_workers do not help and the CPU cores are at 100%"
TEXTS = (
    WAITS,
    "After 300 steps the loss becomes nan with fp16, bf16 is fine",
    "torchrun hangs in init_process_group, the master port is not reachable from the second node",
    "decode gets slow as soon as long prompts arrive",
    "training is slow",
)
LICENCE = (
    "Permission is hereby granted, free of charge, to any person obtaining a copy of this software and associated documentation "
    "files, to deal in the Software without restriction, including without limitation the rights to use, copy, modify, merge, "
    "publish, distribute, sublicense, and sell copies of the Software, subject to the following conditions and disclaimers."
)


def evidence_of(text: str, *facts: str) -> Evidence:
    evidence = Evidence()
    evidence.add([bag_of(enumerate(text.splitlines(), 1), "mail.txt")])
    state(evidence, facts)
    measure_evidence(evidence)
    return evidence


def ranking_of(text: str, *facts: str, findings: tuple[Finding, ...] = (), trouble: float = 0.97) -> Ranking:
    return recognise(evidence_of(text, *facts), (), findings, all_rules(), trouble)


def test_the_compiled_weights_fit_together() -> None:
    known = model()
    rows, columns = known.weights.shape
    assert columns == len(known.causes) + 1 == len(known.scale) == len(known.bias)  # the last is trouble
    assert rows == len(known.words) == len(known.idf)
    assert set(known.causes) == {r.cause for r in all_rules() if not r.preview} - {"none"}, "make recognise"
    assert np.isfinite(known.bias).all() and min(known.idf) > 0


def test_every_weight_of_a_clue_keeps_the_side_of_its_word() -> None:
    """Counts say how much a clue tells, never that it means the contrary."""
    for rule in all_rules():
        for clue in rule.clues:
            held, denied = model().clues.get(clue_key(rule.cause, clue.says), (0.0, 0.0))
            sign = -1.0 if clue.strength in AGAINST_CAUSE else 1.0
            assert sign * held >= 0.0 >= sign * denied, (rule.cause, clue.says)
            if clue.strength.endswith(WHEN_SEEN):
                assert denied == 0.0, (rule.cause, clue.says)


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("trouble", [0.1, 0.97])
def test_probabilities_add_up_and_the_set_holds_the_first(text: str, trouble: float) -> None:
    ranking = ranking_of(text, trouble=trouble)
    assert math.isclose(math.fsum(h.probability for h in ranking.hypotheses), 1.0, abs_tol=1e-9)
    assert all(0.0 <= h.probability <= 1.0 for h in ranking.hypotheses)
    assert [h.probability for h in ranking.hypotheses] == sorted(
        (h.probability for h in ranking.hypotheses), reverse=True
    )
    assert sum(h.cause == SOMETHING_ELSE for h in ranking.hypotheses) == 1
    assert next(h.cause for h in ranking.hypotheses if h.cause != SOMETHING_ELSE) in ranking.in_set


@settings(deadline=None, max_examples=60)
@given(
    st.lists(st.floats(-20.0, 20.0), min_size=3, max_size=30), st.floats(0.01, 0.99),
    st.tuples(st.floats(-3.0, 3.0), st.floats(0.2, 2.0)),
)  # fmt: skip
def test_recalibration_keeps_the_first_and_what_trouble_leaves(
    scores: list[float], trouble: float, curve: tuple[float, float]
) -> None:
    before = np.array(probabilities(scores))
    after = np.array(recalibrated(before.tolist(), trouble, curve))
    first = int(before.argmax())
    assert (after >= 0.0).all() and after.sum() <= max(trouble, after[first]) + 1e-9
    assert after[first] >= after.max() - 1e-12
    doubted = recalibrated(before.tolist(), trouble / 2.0, curve)
    assert doubted[first] <= after[first] + 1e-12
    assert (np.diff(set_costs(np.sort(after)[::-1])) >= -1e-12).all()


def test_words_name_their_cause() -> None:
    named = [h.cause for h in ranking_of(WAITS).hypotheses if h.cause != SOMETHING_ELSE]
    assert named[0] == "input-starved"


def test_what_is_denied_makes_its_cause_less_likely() -> None:
    affirmed = ranking_of("The step is slow, the data loader is the bottleneck, batches arrive late")
    denied = ranking_of("The step is slow, no sign of a data loader bottleneck, no batch arrives late")
    assert denied.probability("input-starved") < 0.5 * affirmed.probability("input-starved")


def test_a_prover_that_speaks_makes_its_cause_likelier() -> None:
    weak = Finding("seen", 0.4, (), cause="host-sync")
    vague = "training is slow"
    assert ranking_of(vague, findings=(weak,)).probability("host-sync") > ranking_of(vague).probability("host-sync")
    assert rule_odds([Finding("offered", 0.9, (), cause="host-sync", optional=True)]) == {}


@pytest.mark.parametrize(
    ("facts", "impossible"),
    [
        (("slow_rank_ratio=1.01",), "straggler-rank"),
        (("oom_in_optimizer=yes",), "oom-sharding-peak"),
    ],
)
def test_what_a_fact_rules_out_has_no_share(facts: tuple[str, ...], impossible: str) -> None:
    text = "steps take twice as long on 512 GPUs, out of memory at smaller tensor parallelism"
    ranking = ranking_of(text, *facts)
    assert ranking.probability(impossible) == 0.0
    assert impossible not in ranking.in_set


def test_reasons_are_lines_of_the_user_with_file_and_line() -> None:
    text = "Dear team,\n\n" + WAITS + "\nbest regards\n"
    first = next(h for h in ranking_of(text).hypotheses if h.cause == "input-starved")
    quoted = [r for r in first.because if r.text.startswith("\u201c")]
    assert quoted and quoted[0].text == f"\u201c{WAITS}\u201d"
    assert [(s.file, s.where) for s in quoted[0].sources] == [("mail.txt", "line 3")]


def test_the_same_input_gives_the_same_answer() -> None:
    one, other = ranking_of(TEXTS[3]), ranking_of(TEXTS[3])
    assert one == other


def test_nothing_said_recognises_nobody() -> None:
    assert [h.cause for h in ranking_of("").hypotheses] == [SOMETHING_ELSE]


@pytest.mark.parametrize("text", [LICENCE, "hello my good old friend", "dear all, the weather is fine"])
def test_other_texts_are_out_of_the_domain(text: str) -> None:
    assert not of_our_trade(evidence_of(text))


@pytest.mark.parametrize("text", [*TEXTS, "oom", "it hangs"])
def test_complaints_are_in_the_domain(text: str) -> None:
    assert of_our_trade(evidence_of(text))


def test_labels_of_a_log_are_no_words(tmp_path: Path) -> None:
    row = " iteration {i:8d}/  500000 | elapsed time per iteration (ms): {ms:.1f} | lm loss: {l:.3E} | grad norm: 1.0 | skipped: 0 |\n"
    log = "".join(row.format(i=i, ms=500 + i % 3, l=2.0) for i in range(40)) + "saving checkpoint at iteration 40\n"
    (tmp_path / "train.log").write_text(log, encoding="utf-8")
    stems = gather([str(tmp_path)], cache=False, workers=1).stems
    assert "checkpoint" in stems and "grad norm" not in stems


def test_no_answer_names_an_internal_case_or_page(tmp_path: Path) -> None:
    (tmp_path / "mail.txt").write_text(WAITS, encoding="utf-8")
    answer = diagnose(str(tmp_path), cache=False)
    said = " ".join(r.text for h in answer.hypotheses for r in (*h.because, *h.against))
    assert "both speak of" not in said and "#" not in said
