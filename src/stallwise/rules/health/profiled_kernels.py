"""Profiled kernels are well when those that make up the time run at the peak of one unit, without a tail."""

from __future__ import annotations

from stallwise.evidence.catalog import kernel as k
from stallwise.evidence.evidence import Evidence
from stallwise.findings.counters import AT_ROOF, Counters
from stallwise.findings.finding import Fix, Reason
from stallwise.findings.proof import Limit, Proof
from stallwise.findings.step_facts import percent

MOST_TIME = 0.90  # of the profiled time must be in such kernels: the rest cannot be worth a headline
SMALL_TAIL = 0.10  # of a kernel's time


def profiled_kernels(evidence: Evidence) -> Proof | None:
    """Time in kernels at a roof over all profiled time."""
    times: dict[str, tuple[float, str, float]] = {}
    for scope in evidence.scopes("kernel"):
        if scope.kernel is None or scope.kernel in times:
            continue
        view = evidence.within(scope)
        fact = view.get(k.TOTAL_TIME) or view.get(k.TIME)
        if fact is None or not (view.all(k.SM_SHARE) or view.all(k.DRAM_SHARE)):
            continue
        what, share = _roof(Counters(view))
        times[scope.kernel] = (fact.number, what, share)
    whole = sum(t for t, _, _ in times.values())
    if not whole > 0:
        return None
    near = sum(t for t, what, _ in times.values() if what)
    name, (seconds, what, share) = max(times.items(), key=lambda item: item[1][0])
    lacks = "" if near >= MOST_TIME * whole else f"only {percent(near / whole)} of the profiled time is at a roof."
    sources = tuple(f.source for f in evidence.all(k.TIME)[:1])
    short = name.split("(", 1)[0][:60]
    return Proof(
        of="profiled kernels",
        says=f"{percent(near / whole)} of the profiled time is in kernels at a roof",
        because=(Reason(f"{short}: {what or 'no unit'} at {percent(share)} of its peak, {percent(seconds / whole)} of the time", sources),),
        confidence=0.9,
        limit=_limit(what, share) if what else None,
        lacks=lacks,
        objects=bool(lacks),
    )  # fmt: skip


def _roof(c: Counters) -> tuple[str, float]:
    """The unit that this kernel keeps full; nothing where none is, or where a part-wave idles the card."""
    units = {"DRAM": c.dram, "math pipe": max(c.math, c.get(k.SM_SHARE))}
    name, share = max(units.items(), key=lambda item: item[1])
    return (name, share) if share >= AT_ROOF and c.get(k.TAIL_SHARE) <= SMALL_TAIL else ("", share)


def _limit(what: str, share: float) -> Limit:
    if what == "DRAM":
        text = f"memory bandwidth, {percent(share)} of its peak: to go faster, move fewer bytes"
        return Limit("memory bandwidth", share, text, (Fix("fuse with its neighbours, or use a narrower type"),))
    text = f"arithmetic, {percent(share)} of the pipe's peak: to go faster, compute less or in a narrower type"
    return Limit("arithmetic", share, text, (Fix("less work, a narrower type, or tensor cores where it is a product"),))
