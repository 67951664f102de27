"""One clock for all ranks, with its error bound, from the collectives they share."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from numpy.typing import NDArray

from stallwise.doctor.measures._matched import Matched, match
from stallwise.doctor.measures._one_clock import OneClock, align
from stallwise.doctor.measures.collectives import TABLE as COLLECTIVES
from stallwise.evidence.catalog import distributed as q
from stallwise.evidence.evidence import Evidence, Item
from stallwise.evidence.fact import Fact, Note, Scope, Source, Table

ORDER = 40
TABLE = "matched_collectives"
NAMED = 6  # ranks named in a note before the rest is counted


def from_evidence(evidence: Evidence) -> Iterator[Item]:
    """Offsets as facts, and the matched collectives on the common clock as a table."""
    tables = evidence.table(COLLECTIVES)
    ranks = sorted({t.scope.rank for t in tables if t.scope.rank is not None})
    if not ranks:
        return
    yield Fact(q.RANKS_SEEN, float(len(ranks)), tables[0].source, samples=len(tables))
    yield from _missing(tables, ranks)
    matched = match(tables)
    if matched is None:
        if len(ranks) > 1:
            yield Note(
                "the ranks' traces share no collective: they are of other steps or of other groups", tables[0].source
            )
        return
    clock = align(matched)
    source = Source(f"{len(matched.ranks)} ranks", f"{len(matched.step)} collectives")
    for at, rank in enumerate(matched.ranks.tolist()):
        if clock.linked[at]:
            own = matched.tables[at].source
            samples = int(clock.samples[at])
            yield Fact(q.CLOCK_OFFSET, float(clock.offset_s[at]), own, Scope(rank=rank), samples=samples)
            if clock.drift[at]:
                yield Fact(q.CLOCK_DRIFT, float(clock.drift[at]), own, Scope(rank=rank), samples=samples)
    yield from _disagreement(matched, clock)
    yield Fact(q.CLOCK_ERROR, clock.worst_error_s, source, samples=int(clock.samples.max(initial=0)))
    yield Table(TABLE, _columns(matched, clock), source, meta=_meta(matched, clock))


def _columns(matched: Matched, clock: OneClock) -> dict[str, NDArray[Any]]:
    return {
        "start_s": clock.on(matched.start),
        "end_s": clock.on(matched.end),
        "exposed_s": matched.column("exposed_s"),
        "op": matched.op,
        "group": matched.group,
        "step": matched.step,
        "size_bytes": matched.size_bytes,
        "expected": matched.expected,
        "together": matched.together,
        "row": matched.row,
    }


def _meta(matched: Matched, clock: OneClock) -> dict[str, object]:
    return {
        "ranks": matched.ranks.tolist(),
        "error_s": clock.worst_error_s,
        "linked": clock.linked.tolist(),
        "hosts": [t.meta.get("host", "") for t in matched.tables],
        "gpus": [t.meta.get("gpu", "") for t in matched.tables],
        "sources": [t.source.file for t in matched.tables],
        "steps": max(int(t.meta["steps"]) for t in matched.tables),
        "unit": matched.tables[0].meta["unit"],
    }


def _missing(tables: list[Table], ranks: list[int]) -> Iterator[Note]:
    world = max(int(t.meta["world_size"]) for t in tables)
    absent = [r for r in range(world) if r not in set(ranks)]
    if len(ranks) > 1 and absent and world <= 65536:
        shown = ", ".join(map(str, absent[:NAMED])) + (
            f" and {len(absent) - NAMED} more" if len(absent) > NAMED else ""
        )
        yield Note(f"{len(ranks)} of {world} ranks are here; not seen: {shown}", Source("ranks"))


def _disagreement(matched: Matched, clock: OneClock) -> Iterator[Note]:
    loose = matched.ranks[~clock.linked].tolist()
    if loose:
        shown = ", ".join(map(str, loose[:NAMED])) + (f" and {len(loose) - NAMED} more" if len(loose) > NAMED else "")
        yield Note(f"ranks {shown} share no collective with the others (other steps?): not compared", Source("ranks"))
    if matched.left_out:
        names = ", ".join(t.source.file for t in matched.left_out[:NAMED])
        yield Note(f"further files of ranks already read are not compared: {names}", Source("ranks"))
