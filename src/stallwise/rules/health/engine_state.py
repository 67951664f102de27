"""A serving engine is well when, under load, nobody waits, nobody is thrown out, and tokens come near their floor."""

from __future__ import annotations

from stallwise.evidence.capture import SERVE_BENCH, SERVE_METRICS
from stallwise.evidence.catalog import serving as v
from stallwise.evidence.evidence import Evidence
from stallwise.findings.finding import Reason
from stallwise.findings.proof import Limit, Proof
from stallwise.findings.step_facts import ms, percent
from stallwise.rules.health.decode_trace import BYTES_LEVERS

NEAR_FLOOR = 1.5  # times what one decode iteration should take: host time, mixed prefill and sampling lie below
ROOM = 0.90  # of the KV cache: above it the next long request evicts another
LOADED = 2.0  # requests at once: an engine with one or none shows nothing about load


def engine_state(evidence: Evidence) -> Proof | None:
    """Queue, preemptions, KV and the time of a token."""
    running = evidence.value(v.RUNNING)
    if running != running and not evidence.all(v.TPOT) and not evidence.all(v.REQUESTS_DONE):
        return None
    waiting, thrown = evidence.value(v.WAITING), evidence.value(v.PREEMPTED, 0.0)
    kv, seen, floor = (evidence.value(q) for q in (v.KV_MEDIAN, v.DECODE_SEEN, v.DECODE_EXPECTED))
    lacks = _lacks(running, waiting, thrown, kv, seen, floor)
    said = [
        f"{running:.0f} running" if running == running else "",
        f"{waiting:.0f} waiting" if waiting == waiting else "",
    ]
    said += [
        f"{thrown:.0f} preempted" if evidence.get(v.PREEMPTED) else "",
        f"KV {percent(kv)} full" if kv == kv else "",
    ]
    near = f"a token in {ms(seen)} where memory allows {ms(floor)}" if seen == seen and floor == floor else ""
    if not any((*said, near)):
        return None
    sources = tuple(f.source for q in (v.RUNNING, v.TPOT) for f in evidence.all(q)[:1])
    return Proof(
        of="serving engine",
        says=", ".join(part for part in (*said, near) if part),
        because=(Reason(", ".join(part for part in (*said, near) if part), sources),),
        confidence=0.85,
        limit=None
        if lacks
        else Limit(
            "memory bandwidth",
            min(1.0, floor / seen),
            f"{near}: {percent(min(1.0, floor / seen))} of the memory's rate; to go faster, move fewer bytes a token",
            BYTES_LEVERS,
        ),
        lacks=lacks,
        objects=waiting > 0 or thrown > 0 or kv > ROOM or (seen == seen and seen > NEAR_FLOOR * floor),
        next=(SERVE_METRICS, SERVE_BENCH) if lacks else (),
    )  # fmt: skip


def _lacks(running: float, waiting: float, thrown: float, kv: float, seen: float, floor: float) -> str:
    if running != running and not waiting > 0:
        return "how much ran at once is not said: nothing here tells how it behaves under load."
    if running < LOADED:
        return "the engine was hardly loaded: nothing here tells how it behaves under load."
    if waiting > 0 or thrown > 0:
        counts = (
            f"{waiting:.0f} requests wait" if waiting > 0 else "",
            f"{thrown:.0f} were thrown out" if thrown > 0 else "",
        )
        return f"{' and '.join(c for c in counts if c)}."
    if kv > ROOM:
        return f"the KV cache is {percent(kv)} full."
    if seen != seen or floor != floor:
        return "no queue and no preemption; nothing here tells whether tokens come as fast as they could."
    if seen > NEAR_FLOOR * floor:
        return f"a token takes {ms(seen)} where {ms(floor)} would do."
    return ""
