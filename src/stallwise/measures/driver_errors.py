"""Driver error codes sorted into causes and consequences, worst kind of each GPU first.

The driver cleans up after any error (Xid 45) and says what recovery is needed (154): those follow. An application's
fault on a GPU that also lost its bus or its memory is read as a consequence of that.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Any

from stallwise.evidence.catalog import hardware as hw
from stallwise.evidence.evidence import Evidence, Item
from stallwise.evidence.fact import Fact, Scope, Source, Table
from stallwise.evidence.xid import Fault, xid

ORDER = -10
QUANTITY = {
    Fault.BUS: hw.XID_BUS,
    Fault.MEMORY: hw.XID_MEMORY,
    Fault.NVLINK: hw.XID_NVLINK,
    Fault.APPLICATION: hw.XID_APPLICATION,
    Fault.OTHER: hw.XID_OTHER,
    Fault.CONSEQUENCE: hw.XID_CONSEQUENCE,
}
HARDWARE = (Fault.BUS, Fault.MEMORY, Fault.NVLINK)


def from_evidence(evidence: Evidence) -> Iterator[Item]:
    """One fact per kind, GPU and code."""
    rows = [row for table in evidence.table("gpu.xids") for row in _rows(table)]
    broken = {(r["node"], r["bus_id"]) for r in rows if _fault(r) in HARDWARE}
    groups: dict[tuple[str, str, int, bool], list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        groups[row["node"], row["bus_id"], row["code"], row["switch"]].append(row)
    for (node, bus_id, code, switch), found in groups.items():
        fault = _fault(found[0])
        if fault is Fault.APPLICATION and (node, bus_id) in broken:
            fault = Fault.CONSEQUENCE
        first = found[0]
        name = "SXid" if switch else "Xid"
        times = f" {len(found)} times" if len(found) > 1 else ""
        who = f" ({first['process']})" if first["process"] and "unknown" not in first["process"] else ""
        where = f" of {node}" if node else ""
        text = (
            f"{name} {code} on {bus_id}{where}{who}{times}: {xid(code).meaning if not switch else first['text'][:80]}"
        )
        source = Source(first["file"], f"line {first['line']}")
        yield Fact(QUANTITY[fault], text, source, Scope(node=node or None), len(found), note=first["text"])
    for fact in evidence.all(hw.GPU_XID):
        if fact.note == "reported by DCGM":
            code = int(fact.number)
            yield Fact(
                QUANTITY[xid(code).fault],
                f"Xid {code} on GPU {fact.scope.gpu}: {xid(code).meaning}",
                fact.source,
                fact.scope,
            )
    yield from _spread(rows)


def _rows(table: Table) -> Iterator[dict[str, Any]]:
    for place in range(len(table)):
        row = {name: column[place] for name, column in table.columns.items()}
        row["code"], row["line"], row["switch"] = int(row["code"]), int(row["line"]), bool(row["switch"])
        yield {
            **{k: str(v) if k in ("node", "bus_id", "process", "text") else v for k, v in row.items()},
            "file": table.source.file,
        }


def _fault(row: dict[str, Any]) -> Fault:
    return Fault.NVLINK if row["switch"] else xid(row["code"]).fault


def _spread(rows: list[dict[str, Any]]) -> Iterator[Fact]:
    """Software faults on many GPUs at once speak for one program or driver, not for many bad cards."""
    software = [r for r in rows if _fault(r) is Fault.APPLICATION]
    if not software:
        return
    source = Source(software[0]["file"], f"line {software[0]['line']}")
    yield Fact(hw.XID_SPREAD, float(len({(r["node"], r["bus_id"]) for r in software})), source)
    addresses = Counter((r["node"], str(r["address"])) for r in software if str(r["address"]))
    repeated = [key for key, count in addresses.items() if count > 1]
    processes = {(r["node"], r["bus_id"]) for r in software if (r["node"], str(r["address"])) in repeated}
    if len(processes) > 1:
        yield Fact(hw.XID_SAME_ADDRESS, 1.0, source)
