"""Kernels under a profiler of counters: how long each runs and how full the units are, whatever page the counters came from.

Refuted by: it claims no health. Throughputs decide which ceiling binds (`profiled_kernels`); without them none can be named.
"""

from __future__ import annotations

from stallwise.doctor.findings.finding import Reason
from stallwise.doctor.findings.proof import Proof
from stallwise.doctor.findings.step_facts import percent
from stallwise.doctor.findings.words import long_seconds, short_name
from stallwise.evidence.capture import Capture
from stallwise.evidence.catalog import kernel as k
from stallwise.evidence.evidence import Evidence
from stallwise.evidence.fact import Fact, Scope

COUNTERS = {
    k.SM_SHARE: "SM", k.DRAM_SHARE: "DRAM", k.TENSOR_SHARE: "tensor pipe", k.ACHIEVED_OCCUPANCY: "occupancy",
}  # fmt: skip
THROUGHPUTS = (k.SM_SHARE, k.DRAM_SHARE)
MOST_NAMED = 3
ALL_COUNTERS = Capture(
    "the same kernels with the full set of counters (metric names: ncu --query-metrics)",
    "ncu --set full --csv --page details -k regex:KERNEL --launch-count 3 python script.py > details.csv",
    "minutes; needs counter permission",
    minutes=15,
)


def counted_kernels(evidence: Evidence) -> Proof | None:
    """Time, launches and units of the kernels that take most."""
    scopes = [s for s in dict.fromkeys(evidence.scopes("kernel")) if _counted(evidence, s)]
    by_time = sorted(((_time(evidence, s), s) for s in scopes), key=lambda x: -(x[0].number if x[0] else 0.0))
    if not by_time:
        return _nothing_counted(evidence)
    reasons = tuple(_reason(evidence, fact, scope) for fact, scope in by_time[:MOST_NAMED])
    known = any(evidence.within(scope).all(q) for _, scope in by_time for q in THROUGHPUTS)
    more = f"; {len(by_time) - MOST_NAMED} more kernels" if len(by_time) > MOST_NAMED else ""
    return Proof(
        of="counters",
        says="; ".join(reason.text for reason in reasons) + more,
        because=reasons,
        confidence=0.5,
        lacks=f"{reasons[0].text}; "
        + ("how near that is to its ceiling is judged kernel by kernel." if known else NO_CEILING),
        next=() if known else (ALL_COUNTERS,),
        covers_run=False,
        describes=True,
    )


def _nothing_counted(evidence: Evidence) -> Proof | None:
    """Kernels were named and none of the asked metrics has a value: misspelt, not permitted, or the launch failed."""
    tables = evidence.table("kernels without counters")
    if not tables:
        return None
    names = [short_name(str(name)) for table in tables for name in table.columns["name"]]
    says = "no kernel was profiled"
    if names:
        listed = ", ".join(names[:MOST_NAMED])
        says = f"{len(names)} kernel{'s' * (len(names) != 1)} ({listed}) and not one value of a metric"
    return Proof(
        of="counters", says=says, because=(Reason(says, tuple(t.source for t in tables)),), lacks=f"{says}: nothing was measured.",
        next=(ALL_COUNTERS,), covers_run=False, describes=True,
    )  # fmt: skip


NO_CEILING = "no throughput was collected, so no ceiling can be named."


def _counted(evidence: Evidence, scope: Scope) -> bool:
    view = evidence.within(scope)
    return any(f.scope.kernel is not None for q in COUNTERS for f in view.all(q))


def _time(evidence: Evidence, scope: Scope) -> Fact | None:
    view = evidence.within(scope)
    return view.get(k.TOTAL_TIME) or view.get(k.TIME)


def _reason(evidence: Evidence, fact: Fact | None, scope: Scope) -> Reason:
    """ "layer_norm: 17 launches of 23.9 us, SM 55%, DRAM 18%, occupancy 58%"."""
    view = evidence.within(scope)
    mean = view.get(k.TIME)
    count = fact.samples if fact is not None else 1
    long = f"{count} launch{'es' * (count != 1)} of {long_seconds(mean.number)}" if mean is not None else "no time told"
    units = [f"{word} {percent(f.number)}" for q, word in COUNTERS.items() if (f := view.get(q)) is not None]
    waves = view.get(k.WAVES)
    units += [f"{waves.number:.2f} waves"] if waves is not None else []
    sources = (fact or mean or next(f for q in COUNTERS for f in view.all(q))).source
    return Reason(", ".join((f"{short_name(scope.kernel or '')}: {long}", *units)), (sources,))
