"""What a change of tensor parallelism does to the attention scores of a rank: its heads, and one s x s matrix of theirs."""

from __future__ import annotations

from stallwise.doctor.findings.finding import Reason
from stallwise.evidence.catalog import expected, fabric
from stallwise.evidence.evidence import Evidence
from stallwise.evidence.fact import Fact
from stallwise.evidence.quantity import Quantity


def scores_by_layout(evidence: Evidence) -> list[Reason]:
    """Heads and scores in both layouts; the degrees alone where nobody states the heads."""
    (tp, tp_then), (now, then) = _both(evidence, fabric.TP_SIZE), _both(evidence, expected.HEADS_EACH)
    (each, each_then) = _both(evidence, expected.SCORES_EACH)
    if not (tp and tp_then) or not 0 < tp.number < tp_then.number:
        return []
    growth = f"{tp_then.number / tp.number:.3g}x"
    if not (now and then and each and each_then):
        return [
            Reason(
                f"TP {tp_then} -> {tp}: each rank holds {growth} the heads, and {growth} of what TP splits in a layer"
            )
        ]
    return [Reason(
        f"heads a rank {then} -> {now} of {now.note}, {growth}: each s x s score matrix of a layer takes "
        f"{each_then} -> {each} ({each.note}, 2 bytes; twice that in fp32), unless FlashAttention keeps it on chip")]  # fmt: skip


def _both(evidence: Evidence, quantity: Quantity) -> tuple[Fact | None, Fact | None]:
    now = next((f for f in evidence.all(quantity) if f.scope.run is None), None)
    return now, evidence.get(quantity, run="before")
