"""Base rates are counted: from the cases, and from what others have published."""

from __future__ import annotations

import pytest

from stallwise.findings.symptom import Symptom
from stallwise.knowledge.cases import cases, leaving_out
from stallwise.knowledge.rates import Counted, published, rates
from stallwise.rules import all_rules, declared


def test_every_cause_has_counted_rates() -> None:
    assert all(isinstance(rule.explains, Counted) for rule in all_rules())


@pytest.mark.parametrize("symptom", list(Symptom), ids=lambda s: s.name)
def test_counted_rates_leave_room_for_what_nobody_declares(symptom: Symptom) -> None:
    found = rates(symptom.name, declared)
    assert all(rate > 0 for rate in found.values())
    assert sum(found.values()) <= 1 + 1e-9


def test_a_rate_follows_its_cases() -> None:
    """Without the projects that had it, a cause is behind fewer complaints."""
    had = {c.project for c in cases() if "fp16-overflow" in c.causes and "BAD_LOSS" in c.symptoms}
    explains = next(r.explains for r in all_rules() if r.cause == "fp16-overflow")
    before = explains[Symptom.BAD_LOSS]
    with leaving_out(*had):
        assert explains[Symptom.BAD_LOSS] < before


def test_what_is_not_declared_has_no_rate() -> None:
    explains = next(r.explains for r in all_rules() if r.cause == "thermal-throttle")
    assert Symptom.BAD_LOSS not in explains
    assert explains.get(Symptom.BAD_LOSS, 0.0) == 0.0


@pytest.mark.parametrize("table", published(), ids=lambda t: t["source"][:20])
def test_a_published_table_names_its_source_its_symptoms_and_causes_of_ours(table: dict[str, object]) -> None:
    assert table["source"] and table["of"]
    under = table["under"]
    assert isinstance(under, list) and all(name in Symptom.__members__ for name in under)
    named = set(table.get("counts", {})) | {c for group in table.get("group", ()) for c in group["causes"]}  # type: ignore
    assert named and named <= {r.cause for r in all_rules()}
