"""The answer in three lines and the words around it, the same in every report."""

from __future__ import annotations

from dataclasses import dataclass

from stallwise.evidence.ledger import Account, Ledger
from stallwise.findings.diagnosis import Diagnosis
from stallwise.findings.finding import Finding, Gain
from stallwise.render.phrases import worth

HEALTHY = "Healthy: nothing worth fixing was found."
UNCLEAR = "Something is wrong, and nothing here says what."

ACCOUNT_MEANING = {
    Account.COMPUTE: "kernels run, other than communication",
    Account.COMMUNICATION: "a collective runs and nothing else hides it",
    Account.INPUT_WAIT: "the device is idle because the next batch is not there",
    Account.LAUNCH_GAP: "the device is idle because the host launches too slowly",
    Account.HOST_WAIT: "the device is idle while the host works, compiles, collects or synchronises",
    Account.COPY: "a copy over the bus with nothing else to do",
    Account.BUBBLE: "a pipeline stage waits for its neighbours",
    Account.ONE_OFF: "first launches, code that is loaded, a graph that is captured: once a run",
    Account.CHECKPOINT: "the loop stands while state is written",
    Account.OTHER: "idle time without a known reason, the profiler's own work included",
    Account.QUEUE: "a request waits for its first iteration",
    Account.PREFILL: "the prompt is read",
    Account.DECODE: "tokens are generated",
    Account.PREEMPTED: "a running request was thrown out and starts again",
    Account.NETWORK: "bytes are on their way between client and server",
}


def worth_text(gain: Gain | None, ledger: Ledger | None) -> str:
    """ "worth 57.4 to 62.4 ms a step (1.92-2.09x)", empty without a gain."""
    if gain is None:
        return ""
    return f"worth {worth(gain, ledger)}" if gain.high_s > 0 else "the same time as above"


def run_findings(diagnosis: Diagnosis) -> list[Finding]:
    """Findings about the run, those about single kernels left out."""
    return [f for f in diagnosis.findings if f.scope.kernel is None]


def kernel_findings(diagnosis: Diagnosis) -> dict[str, list[Finding]]:
    """Findings about single kernels, by kernel."""
    found: dict[str, list[Finding]] = {}
    for finding in diagnosis.findings:
        if finding.scope.kernel is not None:
            found.setdefault(finding.scope.kernel, []).append(finding)
    return found


@dataclass(frozen=True, slots=True)
class Verdict:
    """The answer in three lines: what stalls, why, what to do and what it is worth."""

    what: str
    why: str
    do: str
    tone: str  # "good", "bad" or "unclear"
    tail: str = ""  # the cause and how sure


def verdict(diagnosis: Diagnosis) -> Verdict:
    """The three lines that stand above everything else."""
    run = run_findings(diagnosis)
    if diagnosis.healthy or (not run and _kernels_only(diagnosis)):
        return _calm(diagnosis, run)
    if not run:
        ask = diagnosis.next[0].capture if diagnosis.next else None
        do = f"Capture next: {ask.artifact}: {ask.command}" if ask else ""
        return Verdict(UNCLEAR, _suspicion(diagnosis), do, "unclear")
    first = run[0]
    why = first.summary or (first.because[0].text if first.because else "")
    fix = first.fixes[0] if first.fixes else None
    gain = worth_text(first.gain, diagnosis.ledger) or (fix.worth if fix else "")
    do = ". ".join(part for part in (f"Do: {fix.action}" if fix else "", gain[:1].upper() + gain[1:]) if part)
    tail = f"{first.cause}, {first.confidence:.0%} sure"
    return Verdict(first.headline, why, f"{do}." if do and not do.endswith(".") else do, "bad", tail)


def _kernels_only(diagnosis: Diagnosis) -> bool:
    return bool(kernel_findings(diagnosis))


def _calm(diagnosis: Diagnosis, run: list[Finding]) -> Verdict:
    kernels = kernel_findings(diagnosis)
    if kernels:
        name, found = next(iter(kernels.items()))
        why = f"{len(kernels)} profiled kernels have something to say"
        return Verdict(f"{found[0].headline}", why, found[0].fixes[0].action if found[0].fixes else "", "bad", name)
    optional = [f for f in run if f.optional]
    looked = next((h.because[0].text for h in diagnosis.hypotheses if h.cause == "none" and h.because), "")
    do = (
        f"Optional: {optional[0].headline} {worth_text(optional[0].gain, diagnosis.ledger)}".strip() if optional else ""
    )
    calm = next((h.probability for h in diagnosis.hypotheses if h.cause == "none"), None)
    tail = f"{calm:.0%} sure" if calm is not None else ""
    return Verdict(HEALTHY, looked[:1].upper() + looked[1:] + ("." if looked else ""), do, "good", tail)


def _suspicion(diagnosis: Diagnosis) -> str:
    likely = [f"{h.cause} {h.probability:.0%}" for h in diagnosis.hypotheses[:3]]
    return f"Most likely: {', '.join(likely)}." if likely else ""
