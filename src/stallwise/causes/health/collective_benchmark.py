"""A collective benchmark is well when its bandwidth is near what the links between the cards give.

Refuted by: another run of it, another operation or group that is slower (the worst counts), wrong results, and a bandwidth above
what the links can give, which says that the links are not the ones that were looked up.
"""

from __future__ import annotations

from stallwise.causes.health._second_number import lowest, of_now, two_values
from stallwise.doctor.findings.finding import Fix
from stallwise.doctor.findings.finding import Reason as Because
from stallwise.doctor.findings.proof import Limit, Proof
from stallwise.doctor.findings.step_facts import percent
from stallwise.evidence.capture import NCCL_LOG, TOPOLOGY
from stallwise.evidence.catalog import fabric as f
from stallwise.evidence.evidence import Evidence

# Of what the links should give: reductions inside the switch send less than is counted (1.16 on 16 H100).
POSSIBLE = 1.5
NEAR = 0.70  # of what the links should give: measured large all-reduces lie at 0.75 to 0.95


def collective_benchmark(evidence: Evidence) -> Proof | None:
    """Bus bandwidth against the links."""
    seen, due = evidence.get(f.NCCL_TIME), evidence.get(f.NCCL_EXPECTED)
    if seen is None:
        return None
    shares = [x.number for q in (f.NCCL_SHARE_IN_NODE, f.NCCL_SHARE_ACROSS) for x in evidence.all(q)]
    times = of_now(evidence, f.NCCL_TIME)
    worst = lowest(times) or seen
    share = min(shares, default=worst.number / due.number if due and due.number else float("nan"))
    most = max(shares, default=share)
    lacks = ""
    if evidence.value(f.NCCL_WRONG, 0.0) > 0:
        lacks = "the benchmark got wrong results."
    elif share != share:
        lacks = f"{_rate(seen.number)} of bus bandwidth; nothing here tells what the links should give."
    elif two := two_values(times):
        lacks = f"the bus bandwidth is told as {two}."
    elif most > POSSIBLE:
        lacks = f"{_rate(seen.number)} of bus bandwidth is {percent(most)} of what the links should give: they are not the links that are known here."
    elif share < NEAR:
        lacks = f"{_rate(seen.number)} of bus bandwidth is {percent(share)} of what the links should give."
    summary = f"{_rate(seen.number)} of bus bandwidth" + _setting(evidence)
    summary += (
        f", {percent(seen.number / due.number)} of the {_rate(due.number)} expected of these links"
        if due and due.number
        else ""
    )
    return Proof(
        of="collective benchmark",
        says=summary,
        because=(Because.of(summary, seen),),
        confidence=0.88,
        limit=None
        if lacks
        else Limit("links between the cards", min(share, 1.0), f"{summary}: to go faster, send fewer bytes",
                   (Fix("fewer or narrower bytes (16-bit or 8-bit gradients), or more overlap"),)),
        lacks=lacks,
        objects=bool(lacks) and share == share,
        covers=("collectives",),
        next=(TOPOLOGY, NCCL_LOG) if lacks else (),
    )  # fmt: skip


def _rate(byte_per_s: float) -> str:
    return f"{byte_per_s / 1e9:.1f} GB/s"


def _setting(evidence: Evidence) -> str:
    """At which size, on how many cards of which kind."""
    table = max(evidence.table("collective.bandwidth"), key=lambda t: len(t.columns["size_bytes"]), default=None)
    if table is None or not len(table.columns["size_bytes"]):
        return ""
    best = int(table.columns["bus_bytes_per_s"].argmax())
    size = table.columns["size_bytes"][best]
    ranks, nodes, device = (table.meta.get(word) for word in ("ranks", "nodes", "device"))
    where = f" on {ranks} ranks" if ranks else ""
    where += f" of {nodes} node{'s' if int(nodes) > 1 else ''}" if nodes else ""
    return f" at {size / 1e6:,.0f} MB{where}" + (f" ({device})" if device else "")
