"""The user's own spans and gauges beside the accounts of the ledger, by the names that the user gave them."""

from __future__ import annotations

from dataclasses import replace

from stallwise.evidence.catalog import stages
from stallwise.evidence.evidence import Evidence
from stallwise.evidence.ledger import Ledger
from stallwise.evidence.quantity import Quantity
from stallwise.late import np


def with_names_of_the_user(ledger: Ledger, evidence: Evidence) -> Ledger:
    """The same ledger with mean seconds a step by span and the usual value of every gauge."""
    spans, gauges = _means(evidence, stages.USER_SPAN), _means(evidence, stages.USER_GAUGE)
    return replace(ledger, spans=spans, gauges=gauges) if spans or gauges else ledger


def _means(evidence: Evidence, quantity: Quantity) -> dict[str, float]:
    """Over all steps of all ranks; the longest first."""
    found: dict[str, list[float]] = {}
    for series in evidence.series(quantity):
        values = series.values[np.isfinite(series.values)]
        if series.scope.group and len(values):
            found.setdefault(series.scope.group, []).append(float(values.mean()))
    means = {name: float(np.mean(values)) for name, values in found.items()}
    return dict(sorted(means.items(), key=lambda item: (-item[1], item[0])))
