"""Gains that were tried join the findings they prove: measured stands in the place of predicted, which is kept beside it."""

from __future__ import annotations

from dataclasses import replace

from stallwise.doctor.findings.finding import Finding, Fix, Gain, Reason
from stallwise.doctor.findings.trial import FASTER, NOTHING, SLOWER, Trial, Trials, trials_in
from stallwise.evidence.evidence import Evidence

REFUTED = 0.05  # what is left of a finding whose whole cause was taken away without a difference
PROVEN = 0.97  # taking the cause away made the steps faster by the measured gain


def join(findings: list[Finding], evidence: Evidence) -> list[Finding]:
    """Findings with what was tried of them; gains that no rule expected are added as offers."""
    tried = [t for trials in trials_in(evidence) for t in trials.found if t.measured]
    if not tried:
        return findings
    proofs = _by_cause(tried, findings)
    joined = [_proven(f, proofs.get(f.cause, ())) if f.scope.kernel is None else f for f in findings]
    used = {t.name for found in proofs.values() for t in found}
    return joined + [_offer(t) for t in tried if t.state == FASTER and t.name not in used and t.causes]


def tried_for(finding: Finding, trials: tuple[Trials, ...]) -> Trial | None:
    """The trial that measured this finding's gain."""
    found = [t for one in trials for t in one.found if t.measured and t.name == finding.tried]
    return _best(found)


def _by_cause(tried: list[Trial], findings: list[Finding]) -> dict[str, tuple[Trial, ...]]:
    """Each trial proves one finding: of its causes the one that was expected to be worth most."""
    expected: dict[str, float] = {}
    for finding in findings:
        if finding.scope.kernel is None:
            expected[finding.cause] = max(
                expected.get(finding.cause, 0.0), finding.gain.high_s if finding.gain else 0.0
            )
    found: dict[str, tuple[Trial, ...]] = {}
    for trial in tried:
        causes = [c for c in trial.causes if c in expected]
        if causes:
            cause = max(causes, key=lambda c: expected[c])
            found[cause] = (*found.get(cause, ()), trial)
    return found


def _best(trials: list[Trial]) -> Trial | None:
    return max(trials, key=lambda t: t.ratio, default=None)


def _proven(finding: Finding, trials: tuple[Trial, ...]) -> Finding:
    best = _best([t for t in trials if t.state in (FASTER, NOTHING, SLOWER)])
    if best is None:
        return finding
    reason = Reason(sentence(best), (best.source,))
    if best.state == FASTER:
        gain = _gain(best)
        fix = Fix(best.needs or best.title, gain, risk=best.risk)
        others = tuple(f for f in finding.fixes if f.action != fix.action)
        return replace(
            finding,
            predicted=finding.gain,
            tried=best.name,
            gain=gain,
            confidence=max(finding.confidence, PROVEN),
            because=(*finding.because, reason),
            fixes=(fix, *others),
        )
    if best.removes:
        return replace(
            finding,
            predicted=finding.gain,
            tried=best.name,
            gain=_gain(best),
            confidence=min(finding.confidence, REFUTED),
            against=(*finding.against, reason),
        )
    return replace(finding, predicted=finding.gain, tried=best.name, against=(*finding.against, reason))


def _offer(trial: Trial) -> Finding:
    """A gain that was measured and that no rule had named."""
    gain = _gain(trial)
    return Finding(
        headline=f"{trial.title[:1].upper()}{trial.title[1:]}: {trial.ratio:.2f}x as fast, measured",
        confidence=PROVEN,
        because=(Reason(sentence(trial), (trial.source,)),),
        cause=trial.causes[0],
        gain=gain,
        tried=trial.name,
        fixes=(Fix(trial.needs or trial.title, gain, risk=trial.risk),),
        optional=True,
    )


def sentence(trial: Trial) -> str:
    """What the trial showed, in one sentence."""
    what = {FASTER: "as fast", SLOWER: "as fast, so slower", NOTHING: "as fast: no difference"}.get(
        trial.state, "as fast"
    )
    return (
        f"tried in this job: with {trial.title} a step is {trial.ratio:.2f}x {what} "
        f"({trial.low:.2f} to {trial.high:.2f}, {trial.pairs} pairs of blocks)"
    )


def _gain(trial: Trial) -> Gain:
    low_s, likely_s, high_s = (max(0.0, trial.saved_s(r)) for r in (trial.low, trial.ratio, trial.high))
    basis = f"measured: {trial.name}, {trial.pairs} pairs of blocks"
    return Gain(low_s, high_s, basis, min(max(likely_s, low_s), high_s), trial.before_s)
