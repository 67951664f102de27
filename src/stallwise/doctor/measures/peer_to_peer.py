"""Which GPU pairs hang, and whether the same works with peer-to-peer switched off."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from stallwise.evidence.catalog import hang
from stallwise.evidence.evidence import Evidence, Item
from stallwise.evidence.fact import Fact, Source

ORDER = -3


def from_evidence(evidence: Evidence) -> Iterator[Item]:
    """Facts from runs that hung and runs that did not."""
    runs = [r for table in evidence.table("run.outcomes") for r in _runs(table)]
    paths = _paths(evidence)
    hung = [r for r in runs if r["hung"] and not r["p2p_off"]]
    fine = [r for r in runs if not r["hung"] and (r["ok"] or r["steps"] > 1)]
    if not hung:
        return
    pairs = [r for r in hung if r["devices"].count(",") == 1]
    stuck = {r["devices"] for r in hung}
    off = [r for r in fine if r["p2p_off"] and (not r["devices"] or r["devices"] in stuck or not pairs)]
    other = [r for r in fine if r["devices"].count(",") == 1 and not r["p2p_off"]]
    if pairs and other:
        kinds = sorted({paths.get(_key(r["devices"]), "") for r in pairs} - {""})
        fine_kinds = sorted({paths.get(_key(r["devices"]), "") for r in other} - {""})
        names = ", ".join(r["devices"].replace(",", "-") for r in pairs[:8])
        text = f"GPU pairs {names} hang" + (f" ({' and '.join(kinds)} paths)" if kinds else "")
        text += f"; {len(other)} other pairs work" + (f" ({' and '.join(fine_kinds)})" if fine_kinds else "")
        yield Fact(hang.P2P_BROKEN, text, pairs[0]["source"], samples=len(pairs), note=hang.OTHER_PAIRS_WORK)
    elif hung and off and any(r["p2p_used"] for r in hung):
        yield Fact(hang.P2P_BROKEN, "the run over peer-to-peer hangs", hung[0]["source"], samples=len(hung))
    if off:
        what = f"on GPUs {off[0]['devices']}" if off[0]["devices"] else "for the whole job"
        yield Fact(hang.P2P_OFF_WORKS, f"works with NCCL_P2P_DISABLE=1 {what}", off[0]["source"], samples=len(off))


def _runs(table: Any) -> Iterator[dict[str, Any]]:
    for i in range(len(table)):
        row = {name: column[i].item() for name, column in table.columns.items()}
        yield {**row, "source": Source(table.source.file, f"line {row['line']}")}


def _paths(evidence: Evidence) -> dict[frozenset[str], str]:
    found: dict[frozenset[str], str] = {}
    for table in evidence.table("gpu.paths"):
        c = table.columns
        for first, second, kind in zip(c["first"], c["second"], c["kind"], strict=True):
            if str(first).startswith("GPU") and str(second).startswith("GPU"):
                found[frozenset((str(first)[3:], str(second)[3:]))] = str(kind)
    return found


def _key(devices: str) -> frozenset[str]:
    return frozenset(devices.split(","))
