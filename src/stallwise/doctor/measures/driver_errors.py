"""Driver error codes sorted into causes and consequences, worst kind of each GPU first.

The driver cleans up after any error (Xid 45) and says what recovery is needed (154): those follow. An application's
fault on a GPU that also lost its bus or its memory is read as a consequence of that.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from stallwise.evidence.catalog import hardware as hw
from stallwise.evidence.event import Event
from stallwise.evidence.evidence import Evidence, Item
from stallwise.evidence.fact import Fact, Scope, Source
from stallwise.readers.text.codes import Code, code_of

ORDER = -10
QUANTITY = {
    "bus": hw.XID_BUS,
    "memory": hw.XID_MEMORY,
    "nvlink": hw.XID_NVLINK,
    "program": hw.XID_APPLICATION,
    "other": hw.XID_OTHER,
    "follows": hw.XID_CONSEQUENCE,
}
HARDWARE = ("bus", "memory", "nvlink")
_PROCESS = re.compile(r"pid='?<?\w+>?'?,\s*name=([^,]+?)(?:,|$)")
_ADDRESS = re.compile(r"faulted @ (0x[0-9A-Fa-f_]+)")
_LINE = re.compile(r"lines? (\d+)")
MOST_IN_ORDER = 5
_UNLISTED = Code("xid", None, "", "a driver error", "other")


@dataclass(frozen=True, slots=True)
class Row:
    """One error of the driver or of a switch."""

    code: int
    bus_id: str
    node: str
    switch: bool
    text: str
    process: str
    address: str
    source: Source
    fault: str
    times: int  # in its file, of the first line of its kind
    line: int

    @property
    def name(self) -> str:
        """ "Xid 79 on 0000:01:00"."""
        return f"{'SXid' if self.switch else 'Xid'} {self.code} on {self.bus_id}"


def from_evidence(evidence: Evidence) -> Iterator[Item]:
    """One fact per kind, GPU and code."""
    rows = [_row(e) for e in evidence.events_of("driver-error", "switch-error")]
    last_boot = {t.source.file: int(t.meta["boot_line"]) for t in evidence.table("kernel.log")}
    broken = {(r.node, r.bus_id) for r in rows if r.fault in HARDWARE}
    groups: dict[tuple[str, str, int, bool], list[Row]] = defaultdict(list)
    for row in rows:
        groups[row.node, row.bus_id, row.code, row.switch].append(row)
    for (node, bus_id, code, switch), found in groups.items():
        first = found[0]
        fault = "follows" if first.fault == "program" and (node, bus_id) in broken else first.fault
        count = _count(found)
        times = f" {count} times" if count > 1 else ""
        who = f" ({first.process})" if first.process and "unknown" not in first.process else ""
        where = f" of {node}" if node else ""
        means = first.text[:80] if switch else _xid(code).means
        old = all(r.line < last_boot.get(r.source.file, 0) for r in found)
        text = f"{first.name}{where}{who}{times}{' before the last boot' if old else ''}: {means}"
        yield Fact(QUANTITY[fault], text, first.source, Scope(node=node or None), count, note=first.text)
    for fact in evidence.all(hw.GPU_XID):
        if fact.note == "reported by DCGM" or not rows:  # a code that somebody states is as good as the driver's line
            code = int(fact.number)
            where = f" on GPU {fact.scope.gpu}" if fact.scope.gpu is not None else ""
            text = f"Xid {code}{where}: {_xid(code).means}"
            yield Fact(QUANTITY[_xid(code).fault], text, fact.source, fact.scope)
    yield from _bus_errors(evidence)
    yield from _order(rows)
    yield from _spread(rows)


def _row(event: Event) -> Row:
    detail = event.word("detail").strip()[:300]
    process, address = _PROCESS.search(detail), _ADDRESS.search(detail)
    code, switch = int(event.word("code")), event.kind == "switch-error"
    return Row(
        code, _bus(event.word("bus")), event.scope.node or "", switch, detail,
        process[1].strip() if process else "", address[1] if address else "", event.source,
        "nvlink" if switch else _xid(code).fault, event.times, line_of(event.source),
    )  # fmt: skip


def line_of(source: Source) -> int:
    """The first line that a place names; 0 where it names none."""
    found = _LINE.search(source.where)
    return int(found[1]) if found else 0


def _order(rows: list[Row]) -> Iterator[Fact]:
    """What came first in one log; several files have no common order here."""
    first: dict[str, Row] = {}
    for row in rows:
        first.setdefault(row.name, row)
    if len(first) < 2 or len({row.source.file for row in rows}) > 1:
        return
    first_rows = sorted(first.values(), key=lambda row: row.line)
    more = f" and {len(first_rows) - MOST_IN_ORDER} more" if len(first_rows) > MOST_IN_ORDER else ""
    words = ", then ".join(f"{row.name} (line {row.line})" for row in first_rows[:MOST_IN_ORDER])
    yield Fact(hw.XID_ORDER, f"in this order: {words}{more}", first_rows[0].source)


def _count(rows: list[Row]) -> int:
    """Of a storm a few lines are kept, and the first one of a file says how many there were."""
    most: dict[str, int] = {}
    for row in rows:
        most[row.source.file] = max(most.get(row.source.file, 0), row.times)
    return sum(most.values())


def _xid(code: int) -> Code:
    return code_of("xid", code) or _UNLISTED


def _bus(text: str) -> str:
    """0000:01:00 in lower case, without function number and padding."""
    parts = text.lower().split(".")[0].split(":")
    return ":".join([parts[0][-4:], *parts[1:]]) if len(parts) > 2 else text.lower()


def _bus_errors(evidence: Evidence) -> Iterator[Fact]:
    """PCIe errors of each file, counted: single ones mean nothing."""
    first: dict[str, Event] = {}
    for event in evidence.events_of("pcie-error"):
        first.setdefault(event.source.file, event)
    for event in first.values():
        yield Fact(hw.PCIE_ERRORS, float(event.times), event.source)


def _spread(rows: list[Row]) -> Iterator[Fact]:
    """Software faults on many GPUs at once speak for one program or driver, not for many bad cards."""
    software = [r for r in rows if r.fault == "program"]
    if not software:
        return
    source = software[0].source
    yield Fact(hw.XID_SPREAD, float(len({(r.node, r.bus_id) for r in software})), source)
    addresses = Counter((r.node, r.address) for r in software if r.address)
    repeated = [key for key, count in addresses.items() if count > 1]
    if len({(r.node, r.bus_id) for r in software if (r.node, r.address) in repeated}) > 1:
        yield Fact(hw.XID_SAME_ADDRESS, 1.0, source)
