"""Who waits in which collective, who is not there, and how the ranks' collectives differ.

Joins every account of waiting ranks (watchdog text, flight-recorder dumps, RAS counts, stacks). Ranks of one group must
issue the same collectives in the same order; the first place where they do not is where the hang was made.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from stallwise.doctor.measures._watchdog import waiting
from stallwise.evidence.catalog import fabric, hang
from stallwise.evidence.evidence import Evidence, Item
from stallwise.evidence.fact import WHOLE, Fact, Scope, Source

ORDER = -5
UNKNOWN = -10
FEW_NAMES = 12  # ranks listed in a sentence
# Collectives in which every rank must bring the same number of elements.
SAME_SIZE = ("ALLREDUCE", "BROADCAST", "REDUCE", "ALLGATHER", "REDUCESCATTER")
CODE = ("stack", "traceback")  # these know the call and its line, not its number
MOST_RANKS = 1e7  # more than any cluster has: such a size is damage
DONE = ("completed", "counted", "called")  # "called": a log of calls does not say whether they ended


@dataclass(frozen=True, slots=True)
class Call:
    """One rank's collective."""

    rank: int
    group: str
    sequence: int
    op: str
    state: str
    elements_in: int
    elements_out: int
    dtype: str
    enqueued: int
    completed: int
    frame: str
    via: str
    source: Source

    @property
    def words(self) -> str:
        size = f" of {self.elements_in:,} elements" if self.elements_in >= 0 else ""
        number = f" #{self.sequence}" if self.sequence != UNKNOWN else ""
        return f"{self.op or 'a collective'}{number}{size}"


def from_evidence(evidence: Evidence) -> Iterator[Item]:
    """Facts about the hang; nothing where nobody waits."""
    calls = [c for table in evidence.table("collective.waits") for c in _calls(table)]
    calls += [
        Call(w.rank, w.group, w.sequence, _op(w.op) if w.op else "", w.state, w.elements_in, w.elements_out, "", w.enqueued,
             w.completed, "", "watchdog", w.source)
        for w in waiting(evidence)
    ]  # fmt: skip
    yield from _named_missing(evidence)
    dumped = {int(t.meta["rank"]) for t in evidence.table("collective.waits") if t.meta.get("dump")}
    world = _world(evidence, calls)
    stuck = _stuck(calls)
    if world:
        yield Fact(hang.HANG_WORLD, float(world), calls[0].source if calls else Source("logs"), note="joined")
    if not stuck:
        yield from _counted(calls)
        yield from _mismatch(_in_turn([c for c in calls if c.state == "called"]), [])
        return
    source = stuck[0].source
    yield Fact(hang.HANG_RANKS, float(len({c.rank for c in stuck})), source)
    main = Counter((c.op, c.sequence) for c in stuck).most_common(1)[0][0]
    typical = next(c for c in stuck if (c.op, c.sequence) == main)
    yield Fact(hang.HANG_OP, typical.words, typical.source, note=typical.group)
    frames = Counter(c.frame for c in stuck if c.frame)
    for frame, count in frames.most_common(3):
        first = next(c for c in stuck if c.frame == frame)
        yield Fact(
            hang.HANG_FRAME,
            frame,
            first.source,
            samples=count,
            note=_ranks([c.rank for c in stuck if c.frame == frame]),
        )
    mismatch = list(_mismatch(calls, stuck))
    yield from mismatch
    if not mismatch:
        yield from _behind(stuck)
    yield from _missing(calls, stuck, dumped, world)
    yield from _elsewhere(calls)
    yield from _never(calls, stuck)


def _named_missing(evidence: Evidence) -> Iterator[Fact]:
    """Ranks that a library names as not having come."""
    for event in evidence.events_of("ranks-missing"):
        if ranks := event.word("ranks").strip(" ,"):
            names = [int(r) for r in re.findall(r"\d+", ranks)]
            yield Fact(
                hang.HANG_MISSING, f"ranks {ranks}", event.source, _only(names), len(names), note=event.component
            )


def _calls(table: Any) -> Iterator[Call]:
    c = table.columns
    for i in range(len(table)):
        where = f"record {int(c['line'][i])}" if c["via"][i] == "flight recorder" else f"line {int(c['line'][i])}"
        yield Call(
            int(c["rank"][i]), str(c["group"][i]), int(c["sequence"][i]), _op(str(c["op"][i])), str(c["state"][i]),
            int(c["elements_in"][i]), int(c["elements_out"][i]), str(c["dtype"][i]), int(c["enqueued"][i]),
            int(c["completed"][i]), str(c["frame"][i]), str(c["via"][i]), Source(table.source.file, where),
        )  # fmt: skip


def _op(text: str) -> str:
    """nccl:all_reduce, ALLREDUCE, _all_gather_base, ALLTOALL_BASE as one word each."""
    word = text.split(":", 1)[-1].upper().replace("_", "").split(" ")[0]
    word = re.sub(r"(?:BASE|COALESCED|INTOTENSOR|TENSOR|PYOBJ|OBJECTLIST|OBJECT|SINGLE)$", "", word)
    return re.sub(r"(?:BASE|COALESCED|INTOTENSOR|TENSOR)$", "", word) or text


def _stuck(calls: list[Call]) -> list[Call]:
    """For each rank and group the oldest collective that has not ended."""
    first: dict[tuple[int, str], Call] = {}
    live = {c.rank for c in calls if c.via != "traceback"}  # a live account of a rank beats how it ended
    for call in calls:
        if call.state in DONE or call.state == "elsewhere" or (call.via == "traceback" and call.rank in live):
            continue
        key = call.rank, call.group
        if key not in first or (call.sequence != UNKNOWN and call.sequence < first[key].sequence):
            first[key] = call
    return sorted(first.values(), key=lambda c: (c.group, c.rank))


def _world(evidence: Evidence, calls: list[Call]) -> int:
    sizes = [
        int(f.number) for q in (hang.HANG_WORLD, fabric.FABRIC_RANKS) for f in evidence.all(q) if f.number < MOST_RANKS
    ]
    for call in calls:
        if call.op == "ALLGATHER" and call.elements_in > 0 and call.elements_out % max(call.elements_in, 1) == 0:
            sizes.append(call.elements_out // call.elements_in)
    for table in evidence.table("collective.waits"):
        sizes += [len(ranks) for ranks in table.meta.get("groups", {}).values()]
    for table in evidence.table("nccl.ranks"):
        sizes += [int(n) for n in table.columns["ranks"]]
    return max((size for size in sizes if size < MOST_RANKS), default=0)


def _mismatch(calls: list[Call], stuck: list[Call]) -> Iterator[Fact]:
    """The earliest sequence number at which ranks of one group did different things."""
    places: dict[tuple[str, int], list[Call]] = defaultdict(list)
    for call in calls:
        if call.sequence != UNKNOWN and call.op and call.via not in CODE:
            places[call.group, call.sequence].append(call)
    for (group, sequence), found in sorted(places.items(), key=lambda p: p[0][1]):
        reason = _differs(found)
        if reason:
            others = [c for c in found if c.state not in DONE] or found
            text = f"at #{sequence}{f' of group {group}' if group else ''} {reason}: " + "; ".join(_who(found))
            yield Fact(hang.HANG_MISMATCH, text, others[0].source, samples=len(found), note=reason)
            return
    yield from _different_places(stuck)


def _in_turn(calls: list[Call]) -> list[Call]:
    """A log of calls numbered by each rank's own count: some programs print 0 for all. Cut where the shortest log starts."""
    mine: dict[tuple[str, int], list[Call]] = defaultdict(list)
    for call in calls:
        mine[call.group, call.rank].append(call)
    numbered = all(len({c.sequence for c in own}) == len(own) for own in mine.values())
    if numbered:
        return calls
    kept = min((len(own) for own in mine.values()), default=0)
    if len({len(own) for own in mine.values()}) > 1:
        return []  # ranks whose logs do not begin together cannot be compared by count
    return [replace(c, sequence=turn) for own in mine.values() for turn, c in enumerate(own[:kept])]


def _differs(found: list[Call]) -> str:
    if len({c.rank for c in found}) < 2:
        return ""
    if len({c.op for c in found}) > 1:
        return "ranks call different operations"
    if found[0].op in SAME_SIZE and len({c.elements_in for c in found if c.elements_in >= 0}) > 1:
        return "ranks bring different sizes"
    if len({c.dtype for c in found if c.dtype}) > 1:
        return "ranks bring different types"
    return ""


def _different_places(stuck: list[Call]) -> Iterator[Fact]:
    """Ranks stuck in collectives of different number and kind: one of them took another path through the program."""
    by_group: dict[str, list[Call]] = defaultdict(list)
    for call in stuck:
        by_group[call.group if call.via not in CODE else "stack"].append(call)
    for group, found in by_group.items():
        ops = {c.op for c in found if c.op}
        numbers = {c.sequence for c in found}
        if len({c.rank for c in found}) > 1 and len(ops) > 1 and (len(numbers) > 1 or group == "stack"):
            text = "ranks wait in different collectives: " + "; ".join(_who(found))
            ended = all(c.via == "traceback" for c in found)
            note = hang.PLACES_DIFFER_AT_THE_END if ended else hang.PLACES_DIFFER
            yield Fact(hang.HANG_MISMATCH, text, found[0].source, samples=len(found), note=note)
            return


def _who(found: list[Call]) -> list[str]:
    """ "ranks 0, 1, 3 in ALLTOALL #7", one phrase per distinct collective, most ranks first."""
    groups: dict[tuple[str, int, int, str], list[Call]] = defaultdict(list)
    for call in found:
        groups[call.op, call.sequence, call.elements_in, call.dtype].append(call)
    phrases = []
    for calls in sorted(groups.values(), key=len, reverse=True)[:4]:
        at = f" at {calls[0].frame}" if calls[0].frame else ""
        phrases.append(f"{_ranks([c.rank for c in calls])} in {calls[0].words}{at}")
    return phrases


def _behind(stuck: list[Call]) -> Iterator[Fact]:
    """Same collective, but some ranks had queued more behind it: the others' host stopped."""
    known = [c for c in stuck if c.enqueued != UNKNOWN]
    if len({c.rank for c in known}) < 2:
        return
    least, most = min(c.enqueued for c in known), max(c.enqueued for c in known)
    lower_sequence = {c.sequence for c in known if c.sequence != UNKNOWN}
    if least < most or len(lower_sequence) > 1:
        late = [c for c in known if c.enqueued == least]
        ahead = [c for c in known if c.enqueued == most]
        text = f"{_ranks([c.rank for c in late])} stopped at #{least} while {_ranks([c.rank for c in ahead])} had queued up to #{most}"
        yield Fact(hang.HANG_BEHIND, text, late[0].source, samples=len(late))


def _counted(calls: list[Call]) -> Iterator[Fact]:
    """RAS counts without a watchdog: ranks that issued fewer collectives than the rest."""
    counted = [c for c in calls if c.state == "counted"]
    if counted and len({c.enqueued for c in counted}) > 1:
        yield Fact(hang.HANG_RANKS, float(len(counted)), counted[0].source)
        yield from _behind(counted)


def _missing(calls: list[Call], stuck: list[Call], dumped: set[int], world: int) -> Iterator[Fact]:
    """Ranks whose dump lacks the collective others wait in, and ranks that say nothing while most do."""
    recorded = [c for c in stuck if c.via == "flight recorder"]
    waited = {c.rank for c in stuck}
    if recorded:
        place = Counter((c.group, c.sequence) for c in recorded).most_common(1)[0][0]
        here = {c.rank for c in calls if (c.group, c.sequence) == place}
        absent = sorted(dumped - here)
        if absent:
            yield Fact(
                hang.HANG_MISSING, _ranks(absent), recorded[0].source, _only(absent), len(absent), note="dumps lack it"
            )
    reporting = {rank for rank in waited | dumped if 0 <= rank < world}
    few = 0 < world - len(reporting) <= world // 2  # asked before a list is made: a log may claim any number of ranks
    silent = [rank for rank in range(world) if rank not in reporting] if few else []
    if silent and all(c.rank >= 0 for c in stuck):
        yield Fact(hang.HANG_MISSING, _ranks(silent), stuck[0].source, _only(silent), len(silent), note="silent")


def _elsewhere(calls: list[Call]) -> Iterator[Fact]:
    """Stacks that are in no collective while those of other ranks are."""
    away = [c for c in calls if c.state == "elsewhere"]
    if away and any(c.state == "in call" for c in calls):
        text = f"{_ranks([c.rank for c in away])}, at {away[0].frame}"
        yield Fact(hang.HANG_MISSING, text, away[0].source, samples=len(away), note="stack")


def _never(calls: list[Call], stuck: list[Call]) -> Iterator[Fact]:
    known = [c for c in stuck if c.completed != UNKNOWN]
    if known and all(c.completed <= 0 and c.sequence <= 1 for c in known):
        if not any(c.state == "completed" for c in calls):
            yield Fact(hang.HANG_NEVER_WORKED, 1.0, known[0].source, samples=len(known))
    elif (
        not known
        and stuck
        and all(c.sequence in (0, 1) for c in stuck)
        and not any(c.state == "completed" for c in calls)
    ):
        yield Fact(hang.HANG_NEVER_WORKED, 1.0, stuck[0].source, samples=len(stuck))


def _only(ranks: list[int]) -> Scope:
    """Whose fact it is, where one rank alone is meant."""
    return Scope(rank=ranks[0]) if len(ranks) == 1 else WHOLE


def _ranks(ranks: list[int]) -> str:
    """ "rank 3", "ranks 0-7, 9", at most a few names."""
    unique = sorted(set(ranks))
    if unique == [-1]:
        return "a rank"
    spans: list[str] = []
    start = previous = None
    for rank in [*unique, None]:
        if start is not None and rank == (previous or 0) + 1 and rank is not None:
            previous = rank
            continue
        if start is not None:
            spans.append(str(start) if start == previous else f"{start}-{previous}")
        start = previous = rank
    more = f" and {len(spans) - FEW_NAMES} more" if len(spans) > FEW_NAMES else ""
    return f"rank{'s' if len(unique) > 1 else ''} {', '.join(spans[:FEW_NAMES])}{more}"
