"""Which colour class an account of the ledger has, everywhere the same."""

from __future__ import annotations

from stallwise.evidence.ledger import Account
from stallwise.findings.diagnosis import Diagnosis
from stallwise.findings.finding import Finding

CLASS = {account.value: f"a-{account.name.lower().replace('_', '-')}" for account in Account}


def guilty(diagnosis: Diagnosis) -> Finding | None:
    """The finding that the pictures light up: the first, unless the run is well."""
    if diagnosis.healthy:
        return None
    return next((f for f in diagnosis.findings if f.scope.kernel is None), None)
