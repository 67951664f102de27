"""What is advised while a cause is only likely is complete."""

from __future__ import annotations

import pytest

from stallwise.causes import all_rules
from stallwise.doctor.findings.rule import Rule
from stallwise.doctor.findings.symptom import Symptom
from stallwise.evidence.evidence import Evidence

ADVISED = [rule for rule in all_rules() if rule.advise is not None]


@pytest.mark.parametrize("rule", ADVISED, ids=lambda r: r.cause)
def test_advice_needs_no_evidence_and_is_complete(rule: Rule) -> None:
    assert rule.advise is not None
    finding = rule.advise(Evidence())
    assert finding.headline.endswith(".")
    assert finding.avoid and finding.next
    assert len(finding.fixes) >= 2
    for fix in finding.fixes:
        assert fix.cost and fix.risk and (fix.worth or fix.gain), fix.action


@pytest.mark.parametrize("symptom", list(Symptom), ids=lambda s: s.name)
def test_every_symptom_has_an_explanation(symptom: Symptom) -> None:
    assert any(symptom in rule.explains for rule in all_rules())
