"""Any column over ranks, cards, nodes or experts: how far the farthest lies from the middle, and which one it is."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import TYPE_CHECKING

from stallwise.evidence.catalog import change, stated
from stallwise.evidence.evidence import Evidence, Item
from stallwise.evidence.fact import Fact, Scope, Source
from stallwise.late import np

if TYPE_CHECKING:
    from numpy.typing import NDArray

ORDER = 4
WORKERS = ("rank", "gpu", "node")  # a slow one holds up the others
FEWEST = 3  # members that have a middle
FAR_RATIO = 1.15  # neighbours on one machine differ by a few percent
FAR_SIGMAS = 6.0
NORMAL_SIGMA = 1.4826  # from the median absolute deviation to a standard deviation
# Who comes last to a collective waits least in it: there the short time is the late one.
EXCHANGES = (
    "comm",
    "nccl",
    "reduce",
    "gather",
    "scatter",
    "all_to_all",
    "alltoall",
    "sync",
    "wait",
    "dispatch",
    "combine",
    "barrier",
)


def from_evidence(evidence: Evidence) -> Iterator[Item]:
    """The spread of every time column of a table by rank; the slow rank where the work itself takes longer there."""
    for table in evidence.table("rank_table"):
        from stallwise.doctor.measures._rank_times import late_by_wait

        axis = str(table.meta.get("axis", "rank"))
        members = table.columns[axis]
        for column in table.meta.get("times", ()):
            far = farthest(np.asarray(table.columns[column], dtype=float), short=_exchange(str(column)))
            if far is None:
                continue
            at, ratio = far
            if axis == "rank" and _exchange(str(column)):
                yield from late_by_wait(members, np.asarray(table.columns[column], dtype=float)[:, None], table.source)
            source = Source(table.source.file, f"{axis} {members[at]}, {column}")
            yield Fact(change.SPREAD_RATIO, ratio, source, Scope(layer=str(column)), samples=len(members))
            if axis in WORKERS and not _exchange(str(column)) and not evidence.all(stated.SLOW_RANK_RATIO):
                yield Fact(stated.SLOW_RANK_RATIO, ratio, source, samples=len(members))
                yield Fact(stated.SLOW_NODE, f"{axis} {members[at]}", source, samples=len(members))
    yield from _facts(evidence)


def _facts(evidence: Evidence) -> Iterator[Item]:
    """The same of facts that carry a rank or a node."""
    for name, facts in list(evidence.facts.items()):
        if name not in ("run.step_time", "stage.forward", "stage.backward", "step.compute_time"):
            continue
        by_member: dict[str, float] = defaultdict(float)
        for fact in facts:
            member = fact.scope.rank if fact.scope.rank is not None else fact.scope.node
            if member is not None and not isinstance(fact.value, str):
                by_member[str(member)] = fact.number
        far = farthest(np.array(list(by_member.values())), short=False)
        if far is not None:
            label = list(by_member)[far[0]]
            source = Source(facts[0].source.file, f"rank {label}")
            yield Fact(change.SPREAD_RATIO, far[1], source, Scope(layer=name), samples=len(by_member))


def _exchange(column: str) -> bool:
    return any(word in column.lower().replace("-", "_") for word in EXCHANGES)


def farthest(values: NDArray[np.float64], *, short: bool) -> tuple[int, float] | None:
    """The member farthest on the slow side and its ratio to the middle; None where nobody stands out of the noise."""
    if len(values) < FEWEST or not np.isfinite(values).all() or (values <= 0).any():
        return None
    middle = float(np.median(values))
    noise = NORMAL_SIGMA * float(np.median(np.abs(values - middle)))
    at = int(values.argmin() if short else values.argmax())
    ratio = middle / values[at] if short else values[at] / middle
    clear = abs(values[at] - middle) > FAR_SIGMAS * noise
    return (at, float(ratio)) if ratio > FAR_RATIO and clear else None
