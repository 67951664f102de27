"""Which colour class an account of the ledger has, everywhere the same."""

from __future__ import annotations

from stallwise.doctor.findings.diagnosis import Diagnosis, State
from stallwise.doctor.findings.finding import Finding
from stallwise.evidence.ledger import Category

CLASS = {category.value: f"a-{category.name.lower().replace('_', '-')}" for category in Category}


def guilty(diagnosis: Diagnosis) -> Finding | None:
    """The finding that the pictures light up: the first of a sick run."""
    if diagnosis.state is not State.SICK:
        return None
    return next((f for f in diagnosis.findings if f.scope.kernel is None), None)
