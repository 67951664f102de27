"""From findings to an order: claims capped by the ledger, consequences below causes, optional gains last."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from stallwise.doctor.findings.finding import Finding, Gain
from stallwise.evidence.ledger import Category, Ledger

SURE_ENOUGH = 0.5  # below even odds a finding is a hypothesis, not an answer
SOON_S = 600.0  # a run that dies after so long loses as much as one whose steps take twice the time
UNPRICED_SHARE = 0.05  # how a finding without seconds competes with priced ones: like a loss just worth acting on


def rank(findings: list[Finding], ledger: Ledger | None) -> tuple[Finding, ...]:
    """Best first. Gains never add up to more than the account they claim from."""
    whole_s = ledger.whole_s if ledger else 0.0
    ordered = sorted(findings, key=lambda f: _weight(f, whole_s, ledger), reverse=True)
    ordered = _causes_before_consequences(ordered)
    return tuple(_capped(ordered, ledger)) if ledger else tuple(ordered)


def _weight(finding: Finding, whole_s: float, ledger: Ledger | None) -> tuple[bool, bool, float]:
    """Lost time explained, not hoped for: a wait is measured and counts whole; faster work counts with what is certain.

    What a log or a timer calls a wait counts as far as the ledger has it: the rest hides behind other work.
    """
    share = UNPRICED_SHARE
    if finding.gain is not None and whole_s:
        certain = finding.category is Category.COMPUTE
        gain = finding.gain
        if ledger is not None and finding.category is not None and not gain.measured and not gain.replayed:
            gain = gain.capped(ledger.seconds.get(finding.category, 0.0))
        waited_s = gain.high_s if gain.likely_s is None else min(gain.likely_s, gain.high_s)
        share = (gain.low_s if certain else waited_s) / whole_s
    elif finding.blocking:
        share = 1.0
    else:
        share = max(share, SOON_S / (SOON_S + finding.ends_in_s))
    return (finding.confidence >= SURE_ENOUGH and not finding.optional, finding.blocking, finding.confidence * share)


def _causes_before_consequences(ordered: list[Finding]) -> list[Finding]:
    """A finding that explains another (and is likely) stands directly above it."""
    result = list(ordered)
    for finding in ordered:
        if finding.confidence < SURE_ENOUGH or not finding.explains:
            continue
        place = result.index(finding)
        # What is merely offered never stands above what is broken.
        above = [
            i for i, f in enumerate(result[:place]) if f.cause in finding.explains and f.optional >= finding.optional
        ]
        if above:
            result.insert(above[0], result.pop(place))
    return result


def _capped(ordered: list[Finding], ledger: Ledger) -> list[Finding]:
    left: dict[Category, float] = dict(ledger.seconds)
    result = []
    for finding in ordered:
        if finding.gain is not None:
            gain = _within(finding.gain, finding.category, left, ledger)
            if finding.category is not None:
                left[finding.category] = left.get(finding.category, 0.0) - gain.high_s
            fixes = tuple(
                replace(f, gain=f.gain.of_step(ledger.whole_s).capped(gain.high_s)) if f.gain else f
                for f in finding.fixes
            )
            expected = finding.predicted and _within(finding.predicted, finding.category, ledger.seconds, ledger)
            finding = replace(finding, gain=gain, fixes=fixes, predicted=expected)
        result.append(finding)
    return result


def _within(gain: Gain, category: Category | None, left: Mapping[Category, float], ledger: Ledger) -> Gain:
    """No gain is larger than the time it removes: what its account holds and nobody above claims.

    A replay or a trial may win more than that; then the rest comes out of other accounts (work that hides behind the host
    afterwards), and the gain says how much. So much a replay can only say of a run on its own: among other ranks, time that one of
    them wins turns into waiting for the others.
    """
    if category is None:
        return gain.of_step(ledger.whole_s).capped(ledger.whole_s)
    held = ledger.seconds.get(category, 0.0)
    if gain.measured:  # a trial tells what goes with this cause alone, wherever it shows
        gain = gain.of_step(ledger.whole_s).capped(ledger.whole_s)
        return replace(gain, beside_s=max(gain.high_s - held, 0.0))
    if not gain.replayed:
        return gain.capped(max(left.get(category, 0.0), 0.0))
    beside = max((gain.likely_s or 0.0) - held, 0.0) if ledger.clean_step_s is not None else 0.0
    capped = gain.capped(min(held + beside, ledger.whole_s))
    return replace(capped, beside_s=max(capped.high_s - held, 0.0))
