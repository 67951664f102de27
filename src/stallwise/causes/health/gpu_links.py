"""What the links between cards show of themselves: paths of `topo -m`, and state and counters of `nvlink -s` and `-e`.

Whether the links are fast is for a measured collective; whether they are there, up and without errors is shown here.

Refuted by: one card with fewer links up than the others, one link with many errors, one GPU that stands apart.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from stallwise.doctor.findings.finding import Reason
from stallwise.doctor.findings.proof import Proof
from stallwise.evidence.capture import NCCL_TESTS, Capture
from stallwise.evidence.evidence import Evidence
from stallwise.evidence.fact import Table

NEAR = ("PIX", "PXB", "PHB", "NODE", "SYS")  # from one bridge away to the other socket
FEW_ERRORS = 1000  # replays and CRC errors since boot, as the rule about NVLink faults has it
LINKS = Capture("the state and error counters of all NVLinks", "nvidia-smi nvlink -s; nvidia-smi nvlink -e", "free")
Pairs = dict[tuple[str, str], str]


def gpu_links(evidence: Evidence) -> Proof | None:
    """Paths first, then links."""
    paths, links = evidence.table("gpu.paths"), evidence.table("gpu.links")
    if not paths and not links:
        return None
    rows: list[Reason] = []
    parts, lacks = [], ""
    for table in paths:
        text, wrong = _paths(table)
        parts.append(text)
        rows.append(Reason(text, (table.source,)))
        lacks = lacks or wrong
    if links:
        text, wrong = _links(links)
        parts.append(text)
        rows += [Reason(_card(t), (t.source,)) for t in links]
        lacks = lacks or wrong
    return Proof(
        of="links between the cards",
        says="; ".join(parts),
        because=tuple(rows),
        confidence=0.9,
        lacks=lacks,
        objects=bool(lacks),
        next=(LINKS, NCCL_TESTS) if not links and "NV" in parts[0].replace("no NVLink", "") else (NCCL_TESTS,),
        covers_run=False,
    )


def _paths(table: Table) -> tuple[str, str]:
    """Kinds of path between GPUs, the nearest NIC of each, NUMA nodes; and a GPU that stands apart."""
    columns = table.columns
    pairs: Pairs = {
        (str(a), str(b)): str(k) for a, b, k in zip(columns["first"], columns["second"], columns["kind"], strict=True)
    }
    gpus: list[str] = [d for d in table.meta["devices"] if d.startswith("GPU")]
    nics = [d for d in table.meta["devices"] if not d.startswith("GPU")]
    kinds = Counter(k for (a, b), k in pairs.items() if a in gpus and b in gpus and a < b)
    if len(gpus) == 1:
        summary = "one GPU"
    elif len(kinds) == 1:
        summary = f"{len(gpus)} GPUs, every pair {next(iter(kinds))}"
    else:
        summary = f"{len(gpus)} GPUs, " + ", ".join(f"{n} pairs {k}" for k, n in kinds.most_common())
    if _unlinked(kinds):
        summary += " (no NVLink)"
    near = {g: min((pairs.get((g, n), "SYS") for n in nics), key=_distance, default="") for g in gpus}
    if nics:
        best = Counter(near.values())
        summary += f"; {len(nics)} NICs, nearest at " + ", ".join(
            f"{k} for {n} GPU{'s' if n > 1 else ''}" for k, n in best.most_common()
        )
    numa = Counter(table.meta.get("numa", {}).get(g) for g in gpus)
    numa.pop(None, None)
    if numa:
        summary += f"; NUMA node {', '.join(f'{k} has {n} GPUs' for k, n in sorted(numa.items()))}"
    slow = f"{len(gpus)} GPUs exchange data over PCIe: no NVLink joins them." if _unlinked(kinds) else ""
    return summary, _split_groups(gpus, pairs) or slow


def _unlinked(kinds: Counter[str]) -> bool:
    return bool(kinds) and not any(k.startswith("NV") for k in kinds)


def _distance(kind: str) -> int:
    return NEAR.index(kind) if kind in NEAR else -1


def _split_groups(gpus: Sequence[str], pairs: Pairs) -> str:
    """One GPU of many without NVLink, or with fewer links than all others have among themselves."""
    if len(gpus) < 3:
        return ""
    links = {g: max((_width(pairs.get((g, o), "")) for o in gpus if o != g), default=0) for g in gpus}
    most = Counter(links.values()).most_common(1)[0][0]
    odd = [g for g, n in links.items() if n < most]
    if len(odd) != 1:
        return ""
    return f"{odd[0]} reaches the others over {links[odd[0]] or 'no'} NVLinks where they have {most}."


def _width(kind: str) -> int:
    return int(kind[2:]) if kind.startswith("NV") and kind[2:].isdigit() else 0


def _links(tables: Sequence[Table]) -> tuple[str, str]:
    rates = np.concatenate([t.columns["rate_bytes_per_s"] for t in tables])
    errors = np.concatenate([t.columns["errors"] for t in tables])
    known, counted = rates[~np.isnan(rates)], errors[~np.isnan(errors)]
    of = f"{len(tables)} GPUs" if len(tables) > 1 else "one GPU"
    parts, lacks = [f"{len(rates)} NVLinks of {of}"], ""
    if len(known):
        up = known[known > 0]
        speed = (
            f" at {up.min() / 1e9:g}{'' if up.min() == up.max() else f'-{up.max() / 1e9:g}'} GB/s" if len(up) else ""
        )
        parts.append(f"{len(up)} up{speed}, {len(known) - len(up)} down")
        each = {t.scope.gpu: int((t.columns["rate_bytes_per_s"] > 0).sum()) for t in tables}
        fewest = min(each, key=lambda gpu: each[gpu])
        if not len(up):
            lacks = "no NVLink is up: the fabric did not come up, or no bridge joins these cards."
        elif each[fewest] < max(each.values()):
            lacks = f"GPU {fewest} has {each[fewest]} links up where another has {max(each.values())}."
    if len(counted):
        kinds = sorted({k for t in tables for k in t.meta["counters"]})
        parts.append(f"{int(counted.sum())} errors counted ({', '.join(kinds[:4])})")
        if counted.max() >= FEW_ERRORS:
            lacks = lacks or f"{int(counted.max())} errors on one link."
    return ", ".join(parts), lacks


def _card(table: Table) -> str:
    return f"GPU {table.scope.gpu}: {_links([table])[0].replace(' of one GPU', '')}"
