"""From findings to an order: claims capped by the ledger, consequences below causes, optional gains last."""

from __future__ import annotations

from dataclasses import replace

from stallwise.evidence.ledger import Account, Ledger
from stallwise.findings.finding import Finding

SURE_ENOUGH = 0.5  # below even odds a finding is a hypothesis, not an answer
UNPRICED_SHARE = 0.05  # how a finding without seconds competes with priced ones: like a loss just worth acting on


def rank(findings: list[Finding], ledger: Ledger | None) -> tuple[Finding, ...]:
    """Best first. Gains never add up to more than the account they claim from."""
    whole_s = ledger.whole_s if ledger else 0.0
    ordered = sorted(findings, key=lambda f: _weight(f, whole_s), reverse=True)
    ordered = _causes_before_consequences(ordered)
    return tuple(_capped(ordered, ledger)) if ledger else tuple(ordered)


def _weight(finding: Finding, whole_s: float) -> tuple[bool, bool, float]:
    """Lost time explained, not hoped for: a wait is measured and counts whole; faster work counts with what is certain."""
    share = UNPRICED_SHARE
    if finding.gain is not None and whole_s:
        certain = finding.account is Account.COMPUTE
        share = (finding.gain.low_s if certain else finding.gain.high_s) / whole_s
    elif finding.blocking:
        share = 1.0
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
    left: dict[Account, float] = dict(ledger.seconds)
    result = []
    for finding in ordered:
        if finding.account is not None and finding.gain is not None:
            # An account tells where time shows; a replay and a trial tell what goes with this cause alone, wherever it shows.
            alone = finding.gain.replayed or finding.gain.measured
            room = ledger.whole_s if alone else left.get(finding.account, 0.0)
            gain = finding.gain.capped(max(room, 0.0))
            left[finding.account] = left.get(finding.account, 0.0) - gain.high_s
            fixes = tuple(replace(f, gain=f.gain.capped(gain.high_s)) if f.gain else f for f in finding.fixes)
            finding = replace(finding, gain=gain, fixes=fixes)
        result.append(finding)
    return result
