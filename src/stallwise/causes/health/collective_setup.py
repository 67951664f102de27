"""What a log of NCCL alone can show: which ranks met, and how each pair reaches the other. Not how fast.

Refuted by: more ranks in another log or in what is stated (the largest number counts), a warning, a channel to somebody, a log
that ends before the communicator is complete.
"""

from __future__ import annotations

from collections import Counter

from stallwise.causes.health._second_number import highest, of_now
from stallwise.doctor.findings.finding import Fix, Reason
from stallwise.doctor.findings.proof import Limit, Proof
from stallwise.evidence.capture import NCCL_LOG, NCCL_TESTS
from stallwise.evidence.catalog import distributed, stated
from stallwise.evidence.catalog import fabric as f
from stallwise.evidence.event import Role
from stallwise.evidence.evidence import Evidence
from stallwise.evidence.fact import Fact, Source

SLOW_WAYS = ("SHM", "NET/Socket")  # through host memory, over TCP: other rules weigh them, none calls them well
LOUD = ("error", "fatal", "critical")
ALONE = "one rank alone: it has nothing to exchange and nobody to wait for"
NOT_HOW_FAST = "how fast they exchange is not in this file"


def collective_setup(evidence: Evidence) -> Proof | None:
    """A single rank has nobody to wait for; several are in line when every pair goes the short way and nothing warns."""
    ranks, version = highest(of_now(evidence, f.FABRIC_RANKS)), evidence.get(f.NCCL_VERSION)
    channels = evidence.table("nccl.channels")
    if ranks is None or ranks.number < 1 or (version is None and not channels):
        return None
    if ranks.number == 1 and channels:
        return None  # who has a channel has somebody at its other end
    alone = ranks.number == 1
    summary = ALONE if alone else _described(evidence)
    out = _out_of_line(evidence) or _more_ranks(evidence, ranks)
    lacks = out or ("" if alone or channels else f"{summary}; how they reach each other is not in this file.")
    if not lacks and not alone and not evidence.all(f.NCCL_COMPLETE):
        lacks = f"{summary}; the log ends before NCCL says that its communicator is complete."
    return Proof(
        of="collectives",
        says=summary if alone or lacks or evidence.get(f.NCCL_TIME) is not None else f"{summary}; {NOT_HOW_FAST}",
        because=(Reason(f"{summary}; no warning of NCCL" if not out else summary, _sources(evidence)),),
        confidence=0.8,
        limit=None
        if lacks or not alone
        else Limit("nothing between cards", 1.0, f"{summary}: communication cannot be what limits this run",
                   (Fix("a trace of a few steps shows what does", worth="certainty"),)),
        lacks=lacks,
        objects=bool(out),
        next=() if not lacks else (NCCL_TESTS,) if channels else (NCCL_LOG, NCCL_TESTS),
        covers_run=alone,
        describes=not alone,
    )  # fmt: skip


def _out_of_line(evidence: Evidence) -> str:
    warned = evidence.get(f.NCCL_WARNING)
    if warned is not None:
        return f"NCCL warns: {warned.value}"
    slow = [x for q in (f.IN_NODE_VIA, f.CROSS_NODE_VIA) for x in evidence.all(q) if str(x.value) in SLOW_WAYS]
    if slow:
        return f"data goes via {slow[0].value}."
    files = {t.source.file for kind in ("nccl.ranks", "nccl.channels") for t in evidence.table(kind)}
    errors = (
        e for e in evidence.events if e.source.file in files and e.level in LOUD and e.role in (Role.ROOT, Role.CASCADE)
    )
    error = next(errors, None)
    return f"the log tells of an error: {' '.join(error.text.split())[:160]}" if error is not None else ""


def _more_ranks(evidence: Evidence, ranks: Fact) -> str:
    more = highest(fact for q in (stated.GPUS, distributed.RANKS_SEEN) for fact in of_now(evidence, q))
    if more is None or more.number <= ranks.number:
        return ""
    return f"NCCL counts {ranks} rank{'' if ranks.number == 1 else 's'}, the job has {more}."


def _described(evidence: Evidence) -> str:
    """Ranks, nodes, version, and the way of each pair."""
    ranks, nodes, version = (evidence.get(q) for q in (f.FABRIC_RANKS, f.FABRIC_NODES, f.NCCL_VERSION))
    parts = [f"{ranks} ranks met" + (f" on {nodes} node{'s' if nodes.number > 1 else ''}" if nodes else "")]
    parts.append(f"NCCL {version.value}" if version else "")
    ways: Counter[str] = Counter()
    pairs: dict[str, set[tuple[int, int]]] = {}
    for table in evidence.table("nccl.channels"):
        c = table.columns
        for via, count, a, b in zip(c["via"], c["count"], c["sender"], c["receiver"], strict=True):
            ways[str(via)] += int(count)
            pairs.setdefault(str(via), set()).add((int(a), int(b)))
    parts += [f"{len(pairs[way])} pairs via {way} ({count} channels)" for way, count in ways.most_common(3)]
    nets = dict.fromkeys(str(x.value) for x in evidence.all(f.NCCL_NET))
    parts.append(f"network {' and '.join(nets)}" if nets and nodes and nodes.number > 1 else "")
    return ", ".join(part for part in parts if part)


def _sources(evidence: Evidence) -> tuple[Source, ...]:
    tables = [*evidence.table("nccl.ranks"), *evidence.table("nccl.channels")]
    facts = [*evidence.all(f.FABRIC_RANKS), *evidence.all(f.NCCL_VERSION)]
    return tuple(dict.fromkeys([*(t.source for t in tables), *(x.source for x in facts)]))
