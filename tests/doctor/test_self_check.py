"""An answer that contradicts itself is put right before it is printed, whatever rule wrote it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from stallwise.causes import all_rules
from stallwise.doctor.examine import diagnose
from stallwise.doctor.findings.diagnosis import Diagnosis, Hypothesis
from stallwise.doctor.findings.finding import Finding, Gain, Reason
from stallwise.doctor.self_check import self_checked, without_excluded
from stallwise.evidence.fact import Source


def answered() -> Diagnosis:
    return diagnose(facts=["batch_wait=200ms", "step_time=260ms"])


def with_first(diagnosis: Diagnosis, **changes: object) -> Diagnosis:
    first = replace(diagnosis.findings[0], **changes)  # type: ignore[arg-type]
    return replace(diagnosis, findings=(first, *diagnosis.findings[1:]))


def test_a_sound_answer_stays_as_it_is() -> None:
    diagnosis = answered()
    checked = self_checked(diagnosis)
    assert (checked.findings, checked.hypotheses, checked.notes) == (
        diagnosis.findings, diagnosis.hypotheses, diagnosis.notes,
    )  # fmt: skip


def test_no_gain_is_longer_than_the_step_it_is_won_from() -> None:
    checked = self_checked(with_first(answered(), gain=Gain(0.3, 9.0, "made up", likely_s=5.0, step_s=0.26)))
    gain = checked.findings[0].gain
    assert gain is not None and gain.high_s == 0.26 and gain.likely_s == 0.26 and gain.low_s <= gain.high_s
    assert any("held to the time" in n.text for n in checked.notes)


def test_a_gain_that_is_no_range_is_dropped_or_put_in_order() -> None:
    assert self_checked(with_first(answered(), gain=Gain(0.0, float("nan"), "made up"))).findings[0].gain is None
    turned = self_checked(with_first(answered(), gain=Gain(0.2, 0.1, "made up"))).findings[0].gain
    assert turned is not None and turned.low_s <= turned.high_s


def test_probabilities_are_probabilities_and_recognised_causes_stand_in_their_order() -> None:
    recognised = replace(answered().findings[0], recognised=True, confidence=1.4)
    odd = replace(
        answered(),
        findings=(recognised,),
        hypotheses=(
            Hypothesis("host-sync", 0.2),
            Hypothesis("input-starved", 1.4),
            Hypothesis("launch-bound", float("nan")),
        ),
    )
    checked = self_checked(odd)
    assert checked.findings[0].confidence == 1.0
    assert [(h.cause, h.probability) for h in checked.hypotheses] == [
        ("input-starved", 1.0), ("host-sync", 0.2), ("launch-bound", 0.0),
    ]  # fmt: skip


def test_a_quote_is_cited_with_the_line_it_stands_in(tmp_path: Path) -> None:
    path = tmp_path / "train.log"
    path.write_text("first line\nCUDA error: an illegal memory access was encountered\nlast line\n", encoding="utf-8")
    quote = Reason("\u201cCUDA error: an illegal memory access was encountered\u201d", (Source(str(path), "line 1"),))
    checked = self_checked(with_first(answered(), because=(quote,)))
    assert checked.findings[0].because[0].sources[0].where == "line 2"


def test_a_cause_that_the_facts_exclude_by_definition_is_no_finding() -> None:
    diagnosis = diagnose(facts=["fabric.one_node=yes", "step_time=260ms"])
    rules = all_rules()
    seen = [
        Finding("the fabric is full", 0.9, (), cause="network-congestion"),
        Finding("waits", 0.9, (), cause="input-starved"),
    ]
    assert [f.cause for f in without_excluded(seen, rules, diagnosis.evidence)] == ["input-starved"]
