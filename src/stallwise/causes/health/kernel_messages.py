"""What the kernel's messages show: no fault of a GPU, of its links or of the machine in so many lines, or which there are.

A quiet log says that nobody failed; it says nothing of how fast anything ran.

Refuted by: one message of a fault in any of the logs.
"""

from __future__ import annotations

from collections import Counter

from stallwise.doctor.findings.finding import Reason
from stallwise.doctor.findings.proof import Proof
from stallwise.evidence.capture import LSPCI, NVIDIA_SMI_Q, Capture
from stallwise.evidence.catalog import hardware as hw
from stallwise.evidence.event import Event, Role
from stallwise.evidence.evidence import Evidence
from stallwise.evidence.fact import Table

# Kinds of messages that say that something failed, and how they are counted.
FAULTS = {
    "driver-error": "Xid",
    "switch-error": "NVSwitch error",
    "gpu-lost": "lost GPU",
    "memory-fault": "memory fault of a GPU",
    "illegal-access": "illegal access",
    "driver-fault": "driver fault",
    "driver-mismatch": "driver mismatch",
    "fabric-fault": "fabric fault",
    "nvlink-fault": "NVLink fault",
    "gsp-timeout": "GSP timeout",
    "pcie-error": "PCIe error",
    "iommu-fault": "IOMMU fault",
    "nic-event": "NIC event",
    "machine-check": "machine check",
    "task-blocked": "blocked task",
    "cpu-lockup": "CPU lockup",
    "storage-stalled": "stalled file system",
    "disk-error": "disk error",
    "thermal-event": "thermal event",
    "process-killed": "process killed for memory",
}
CODED = (hw.XID_BUS, hw.XID_MEMORY, hw.XID_NVLINK, hw.XID_APPLICATION, hw.XID_OTHER)
LONGEST = 140  # letters of a quoted message
SILENT = "no GPU driver speaks in this log, so it tells nothing of a GPU."
NICS = Capture(
    "the state and error counters of the network links", "ibstat; rdma link; ethtool -S IFACE", "free", minutes=1
)
# What shows more of a kind of fault; of all others the cards' own state does.
MORE = {"NIC event": NICS, "PCIe error": LSPCI}


def kernel_messages(evidence: Evidence) -> Proof | None:
    """Counts what failed in each log of the kernel."""
    logs = evidence.table("kernel.log")
    if not logs:
        return None
    files = {t.source.file for t in logs}
    faults = [e for e in evidence.events if e.source.file in files and e.role is Role.ROOT and e.kind in FAULTS]
    failed = _counted(faults)
    lines = sum(len(t) for t in logs)
    found = ", ".join(f"{n} x {kind}" for kind, n in failed.most_common(6))
    summary = (
        f"{lines:,} kernel lines{_span(logs)}: "
        + (found or "no Xid, no lost GPU, no NVLink, PCIe or memory fault, no link down, no process killed for memory")
        + _driver(evidence)
    )
    others = sum(int(t.meta["others"]) for t in logs)
    tail = f"; {others:,} line{'s' if others > 1 else ''} of other services left out" if others else ""
    return Proof(
        of="kernel log",
        says=summary + tail,
        because=tuple(Reason(summary, (t.source,)) for t in logs),
        confidence=0.9,
        lacks=f"the kernel log holds {found}{_first(evidence, faults)}."
        if failed
        else ""
        if any(t.meta["driver"] for t in logs)
        else SILENT,
        objects=bool(failed),
        next=tuple(dict.fromkeys(MORE.get(kind, NVIDIA_SMI_Q) for kind, _ in failed.most_common(2))) or (NVIDIA_SMI_Q,),
        covers_run=False,
    )


def _counted(faults: list[Event]) -> Counter[str]:
    """How often each kind came: of a message that repeats only the first and the last are kept, and the first carries the count."""
    kept: dict[tuple[str, str, str], list[Event]] = {}
    for event in faults:
        kept.setdefault((event.source.file, event.pattern_id, FAULTS[event.kind]), []).append(event)
    failed = Counter[str]()
    for (_, _, kind), own in kept.items():
        failed[kind] += max(len(own), max(e.times for e in own))
    return failed


def _first(evidence: Evidence, faults: list[Event]) -> str:
    """What came first: a code with its meaning, or the message itself."""
    first = faults[0]
    coded = (f for q in CODED for f in evidence.all(q) if f.source == first.source)
    summary = next((str(f.value) for f in coded), " ".join(first.text.split())[:LONGEST])
    return f"; first: {summary} ({first.source.where})"


def _span(logs: list[Table]) -> str:
    first, last, boots = logs[0].meta["first"], logs[-1].meta["last"], sum(int(t.meta["boots"]) for t in logs)
    alike = first[:1].isalpha() == last[:1].isalpha()  # a date and seconds since boot have no common axis
    when = f"{first} to {last}" if first and last and alike else ""
    over = f"{boots} boots" if boots > 1 else ""
    words = ", ".join(w for w in (when, over) if w)
    return f" ({words})" if words else ""


def _driver(evidence: Evidence) -> str:
    versions = list(dict.fromkeys(str(f.value) for f in evidence.all(hw.DRIVER_VERSION)))
    return f"; driver {' and '.join(versions[:3])} loads" if versions else ""
