"""Flight-recorder dumps are in line when every collective that was enqueued has completed, on every rank alike.

Refuted by: an operation that is open on any rank, a rank that stands at an earlier one than another.
"""

from __future__ import annotations

from collections import Counter

import numpy as np

from stallwise.causes.health._served import short_time
from stallwise.doctor.findings.finding import Reason
from stallwise.doctor.findings.proof import Proof
from stallwise.evidence.capture import FLIGHT_RECORDER
from stallwise.evidence.evidence import Evidence
from stallwise.evidence.fact import Table

TABLE = "collective.waits"
DONE = "completed"


def recorded_collectives(evidence: Evidence) -> Proof | None:
    """How many, of which kind, and whether any is open."""
    dumps = [t for t in evidence.table(TABLE) if t.meta.get("dump")]
    if not dumps:
        return None
    says, out = _described(dumps), _out_of_line(dumps)
    world = max((len(m) for t in dumps for m in _groups(t).values()), default=0)
    alone = f"; {len(dumps)} of {world} ranks are here" if 0 < len(dumps) < world else ""
    return Proof(
        of="recorded collectives",
        says=says + alone,
        because=tuple(Reason(_described([t]), (t.source,)) for t in dumps),
        confidence=0.8,
        lacks=out,
        objects=bool(out) and any(len(t) for t in dumps),
        covers_run=False,
        next=(FLIGHT_RECORDER,) if out else (),
    )


def _groups(table: Table) -> dict[str, list[int]]:
    groups = table.meta.get("groups")
    return groups if isinstance(groups, dict) else {}


def _described(dumps: list[Table]) -> str:
    states = Counter(str(s) for t in dumps for s in t.columns["state"])
    kinds = Counter(str(op).rpartition(":")[2] for t in dumps for op in t.columns["op"])
    total = sum(states.values())
    if not total:
        return "the recording is empty: no collective was enqueued"
    listed_kinds = ", ".join(f"{count} {name}" for name, count in kinds.most_common(3))
    ended = "all completed" if states[DONE] == total else f"{states[DONE]} of {total} completed"
    took = [d for t in dumps for d in t.meta.get("durations_s", ()) if d > 0]
    pace = f", {short_time(float(np.median(took)))} each in the median" if took else ""
    return f"{total} collectives ({listed_kinds}), {ended}{pace}{_counters(dumps)}"


def _counters(dumps: list[Table]) -> str:
    last = {int(n) for t in dumps for n in t.columns["enqueued"] if n >= 0}
    done = {int(n) for t in dumps for n in t.columns["completed"] if n >= 0}
    return f"; last enqueued {max(last)}, last completed {max(done)}" if last and done else ""


def _out_of_line(dumps: list[Table]) -> str:
    open_ = [(t, i) for t in dumps for i, state in enumerate(t.columns["state"]) if str(state) != DONE]
    if not any(len(t) for t in dumps):
        return "the recording is empty: no collective was enqueued."
    if open_:
        table, at = open_[0]
        return f"{len(open_)} collectives have not completed, the first: {table.columns['op'][at]} of rank {table.meta.get('rank')}."
    behind = {str(t.meta.get("rank")): _last(t) for t in dumps}
    if len(set(behind.values())) > 1:
        low, high = min(behind, key=lambda r: behind[r]), max(behind, key=lambda r: behind[r])
        return f"rank {low} stands at collective {behind[low]}, rank {high} at {behind[high]}."
    return ""


def _last(table: Table) -> int:
    return int(max(table.columns["sequence"], default=-1))
