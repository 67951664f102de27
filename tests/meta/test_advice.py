"""What is known of a cause while it is only likely stands beside its rule, and its advice is complete."""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules

import pytest

import stallwise.rules
from stallwise.evidence.evidence import Evidence
from stallwise.findings.rule import Rule
from stallwise.findings.symptom import Symptom
from stallwise.rules import all_rules

ADVISED = [rule for rule in all_rules() if rule.advise is not None]


def test_a_suspicion_has_its_rule() -> None:
    orphans = []
    for family in iter_modules(stallwise.rules.__path__):
        package = import_module(f"stallwise.rules.{family.name}")
        names = {m.name for m in iter_modules(package.__path__)}
        for name in names:
            if name.startswith("_"):
                module = import_module(f"{package.__name__}.{name}")
                speaks = any(hasattr(module, word) for word in ("EXPLAINS", "CLUES", "advise"))
                if speaks and name[1:] not in names:
                    orphans.append(f"{family.name}/{name}")
    assert not orphans


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
