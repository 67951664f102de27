"""A serving engine is well when, under load, nobody waits, nobody is thrown out, and tokens come near their floor.

Refuted by: the worst moment instead of the middle one (the fullest cache, any queue, the slowest hundredth of tokens and first
tokens), requests that were given up or computed again, prompts that starve running answers.
"""

from __future__ import annotations

from stallwise.evidence.capture import SERVE_BENCH, SERVE_METRICS
from stallwise.evidence.catalog import serving as v
from stallwise.evidence.evidence import Evidence
from stallwise.evidence.quantity import Quantity
from stallwise.findings.finding import Reason
from stallwise.findings.proof import Limit, Proof
from stallwise.findings.step_facts import ms, percent
from stallwise.rules.health._ceiling import WEIGHT_LEVERS
from stallwise.rules.health._second_number import highest, of_now

NEAR_FLOOR = 1.5  # times what one decode iteration should take: host time, mixed prefill and sampling lie below
ROOM = 0.90  # of the KV cache: above it the next long request evicts another
BRIEF = 0.05  # of the samples
TAIL = 4.0  # times the floor, or the usual first token: what chunked prompts and long ones explain lies below
LOST_REQUESTS = {
    v.ABORTED: "requests were given up",
    v.RESCHEDULED: "requests lost their KV and were computed again",
    v.PREFILL_STALLS: "samples show prompts that starve running answers",
    v.PAUSED: "requests were paused for lack of KV",
}
LOADED = 2.0  # requests at once: an engine with one or none shows nothing about load


def engine_state(evidence: Evidence) -> Proof | None:
    """Queue, preemptions, KV and the time of a token."""
    running = evidence.value(v.RUNNING)
    if running != running and not evidence.all(v.TPOT) and not evidence.all(v.REQUESTS_DONE):
        return None
    waiting, thrown = _most(evidence, v.WAITING), _most(evidence, v.PREEMPTED, 0.0)
    kv = max((x for q in (v.KV_MAX, v.KV_MEDIAN) if (x := _most(evidence, q)) == x), default=float("nan"))
    seen, floor = _most(evidence, v.DECODE_SEEN), evidence.value(v.DECODE_EXPECTED)
    refuted = _refuted(evidence, floor)
    lacks = _lacks(running, waiting, thrown, kv, seen, floor) or refuted
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
            WEIGHT_LEVERS,
        ),
        lacks=lacks,
        objects=waiting > 0 or thrown > 0 or kv > ROOM or (seen == seen and seen > NEAR_FLOOR * floor) or bool(refuted),
        next=(SERVE_METRICS, SERVE_BENCH) if lacks else (),
    )  # fmt: skip


def _most(evidence: Evidence, quantity: Quantity, default: float = float("nan")) -> float:
    """The worst of all that tell it."""
    worst = highest(of_now(evidence, quantity))
    return worst.number if worst is not None else default


def _refuted(evidence: Evidence, floor: float) -> str:
    """A second number that says otherwise."""
    for quantity, what in LOST_REQUESTS.items():
        if _most(evidence, quantity, 0.0) > 0:
            return f"{_most(evidence, quantity):.0f} {what}."
    if _most(evidence, v.WAITING_SHARE, 0.0) > BRIEF:
        return f"requests wait in {percent(_most(evidence, v.WAITING_SHARE))} of the samples."
    tail, ttft, first = (_most(evidence, q) for q in (v.TPOT_TAIL, v.TTFT_TAIL, v.TTFT))
    if tail > TAIL * floor:
        return f"one token in a hundred takes {ms(tail)} where {ms(floor)} would do."
    if ttft > TAIL * first:
        return f"one first token in a hundred takes {ms(ttft)}, the usual one {ms(first)}."
    return ""


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
