"""The start of an engine without any request: how far it came and what took how long. How it serves is not in this file.

Never a proof of anything well. Refuted by: nothing, as it always lacks something.
"""

from __future__ import annotations

from stallwise.causes.health._served import line_of, refusals, short_time
from stallwise.doctor.findings.finding import Reason
from stallwise.doctor.findings.proof import Proof
from stallwise.evidence.capture import SERVE_LOG
from stallwise.evidence.catalog import hang
from stallwise.evidence.catalog import serving as v
from stallwise.evidence.event import Event
from stallwise.evidence.evidence import Evidence
from stallwise.evidence.fact import Fact

STARTING = (v.START_PHASE, v.READY_TIME, v.KV_TOKENS, v.MAX_LENGTH, v.MAX_SEQS, v.VERSION)
SERVING = (v.SAMPLES, v.REQUESTS_DONE, v.RUNNING, v.TTFT, v.TPOT)
BEGINS, ENDS, READY = "phase-begins", "phase-ends", "engine-ready"
LONGEST = 100  # letters of a quoted line
MOST = 5  # phases


def engine_start(evidence: Evidence) -> Proof | None:
    """Phases, the last thing it did, and that it served nobody."""
    starting = [f for q in STARTING for f in evidence.all(q)]
    begun = [e for e in evidence.events if e.kind == BEGINS]
    if (
        not starting
        or not (evidence.all(v.START_PHASE) or evidence.all(v.VERSION) or begun)
        or any(evidence.all(q) for q in SERVING)
    ):
        return None
    refused = refusals(evidence)
    says = "; ".join(part for part in (_phases(evidence), _pool(evidence), _end(evidence, begun), refused) if part)
    without = "whose only requests were refused" if refused else "without a request"
    return Proof(
        of="start of the engine",
        says=says,
        because=(Reason(says, (starting[0].source,)),),
        confidence=0.7,
        lacks=f"this is a start {without}: {says}; how it serves is not in this file.",
        objects=bool(refused),
        next=(SERVE_LOG,),
    )


def _end(evidence: Evidence, begun: list[Event]) -> str:
    ready = evidence.get(v.READY_TIME)
    if ready is not None:
        return f"it was ready after {ready}"
    ending = next((e for e in evidence.events if e.kind == READY), None)
    return f"it was ready ({ending.source.where})" if ending is not None else _last(evidence, begun)


def _phases(evidence: Evidence) -> str:
    slowest: dict[str, Fact] = {}
    for fact in sorted(evidence.all(v.START_PHASE), key=lambda f: f.number):
        slowest[fact.scope.layer or "start"] = fact  # workers go through a phase together
    longest = sorted(slowest.items(), key=lambda own: -own[1].number)[:MOST]
    return ", ".join(f"{name} {short_time(fact.number)}" for name, fact in longest)


def _pool(evidence: Evidence) -> str:
    tokens = evidence.get(v.KV_TOKENS)
    return f"KV cache of {tokens} tokens" if tokens is not None else ""


def _last(evidence: Evidence, begun: list[Event]) -> str:
    """What the log ends in: the last act that is known, else the last phase that began and did not end; then its last line."""
    ends = {(e.source.file, phase): line_of(e.source) for e in evidence.events if e.kind == ENDS for phase in e.slots}
    still = [e for e in begun if all(line_of(e.source) > ends.get((e.source.file, phase), 0) for phase in e.slots)]
    last = max(still, key=lambda e: line_of(e.source), default=None)
    act, line = evidence.get(hang.HANG_LAST_ACT), evidence.get(v.LAST_LINE)
    ending = "the log ends before it is ready"
    if act is not None and (last is None or line_of(act.source) > line_of(last.source)):
        ending = f"the log ends while it is {act.value} ({act.source.where})"
    elif last is not None:
        ending = f"the log ends in: {_short(last.text)} ({last.source.where})"
    if line is None or line.source.where in ending:
        return ending
    again = f", one of {line.samples} like it" if line.samples > 1 else ""
    return f"{ending}; its last line: {_short(str(line.value))} ({line.source.where}{again})"


def _short(text: str) -> str:
    return " ".join(text.split())[:LONGEST]
