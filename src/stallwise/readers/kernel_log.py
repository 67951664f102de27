"""Kernel messages (dmesg, journal, syslog): the driver's errors, NVSwitch, PCIe and fabric-manager lines."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from stallwise.evidence.artifact import Artifact
from stallwise.evidence.catalog import hardware as hw
from stallwise.evidence.catalog.hang import IOMMU_FAULT, PROCESS_KILLED
from stallwise.evidence.evidence import Item
from stallwise.evidence.fact import Fact, Scope, Source, Table
from stallwise.readers._log_lines import LONGEST

FORMAT = "kernel log"

XID = re.compile(r"NVRM: Xid \((?:PCI:)?([0-9A-Fa-f:.]+)[^)]*\): ?(\d+)(?:,\s*(.*))?")
SXID = re.compile(r"SXid \(PCI:([0-9A-Fa-f:.]+)\): ?(\d+)(?:,\s*(.*))?")
PROCESS = re.compile(r"pid='?(<?[\w]+>?)'?,\s*name=([^,]+?)(?:,|$)")
ADDRESS = re.compile(r"faulted @ (0x[0-9A-Fa-f_]+)")
DRIVER = re.compile(r"NVRM: loading NVIDIA UNIX.*?Module(?: for)?\s+\S+\s+(\d+\.\d+(?:\.\d+)?)")
LIMITED = re.compile(r"(?:pci|nvidia) (\S+): (.*available PCIe bandwidth, limited by .*)")
AER = re.compile(
    r"(?:pcieport|nvidia|pci) \S+:.*(?:PCIe Bus Error: severity=\w+|AER: .*error)|AER: (?:Corrected|Uncorrected|Mult)",
    re.IGNORECASE,
)
LOST = re.compile(
    r"NVRM: .*(?:fallen off the bus|GPU is lost|RmInitAdapter failed)|GPU is likely in a bad state|"
    r"nvidia.*: (?:device lost|Unable to change power state)",
    re.IGNORECASE,
)
FABRIC = re.compile(
    r"fabric ?manager.*(?:error|fail|fatal|abort|not (?:running|started))|nvidia-nvswitch\d*: .*(?:fatal|error|fail)|"
    r"NVLink.*(?:training failed|fatal error|link down)|failed to (?:initialize|configure) .*nvswitch",
    re.IGNORECASE,
)
IOMMU = re.compile(
    r"(?:DMAR: .*(?:DMA (?:Read|Write)|fault)|AMD-Vi: .*(?:IO_PAGE_FAULT|Event logged)|arm-smmu.*fault)", re.I
)
OOM_KILL = re.compile(
    r"(?:Out of memory: Kill(?:ed)? process|oom-kill:.*task=|Memory cgroup out of memory: Kill)[^\n]*"
)
STAMP_BOOT = re.compile(r"^(?:<\d+>)?\[\s*(\d+\.\d+)\]")
JOURNAL = re.compile(r"^([A-Z][a-z]{2}\s+\d+ \d\d:\d\d:\d\d|\d{4}-\d\d-\d\dT\S+)\s+(\S+)\s+kernel:")
RECOGNISED = re.compile(
    rb"NVRM: |SXid \(PCI|nvidia-nvswitch|PCIe Bus Error|available PCIe bandwidth|AMD-Vi: |DMAR: |kernel: nvidia|"
    rb"oom-kill:|Out of memory: Kill|nvidia-fabricmanager|fabric manager|FabricManager"
)


def recognises(name: str, head: bytes) -> bool:
    """Words only the kernel, the NVIDIA driver or NVSwitch write."""
    return RECOGNISED.search(head) is not None


def read(artifact: Artifact) -> Iterator[Item]:
    """A table of error codes, and a fact for each other line that speaks of health."""
    rows: list[tuple[float, int, str, str, str, str, str, int, bool]] = []
    aer = 0
    aer_line = 0
    for line_number, line in enumerate((x[:LONGEST] for x in artifact.lines()), 1):
        journal = JOURNAL.match(line)
        node = journal[2] if journal else None
        source = Source(artifact.name, f"line {line_number}")
        scope = Scope(node=node)
        found = XID.search(line)
        switch = None if found else SXID.search(line)
        if match := (found or switch):
            text = (match[3] or "").strip()
            process = PROCESS.search(text)
            address = ADDRESS.search(text)
            rows.append(
                (
                    _time_s(line), int(match[2]), _bus(match[1]), process[2].strip() if process else "",
                    address[1] if address else "", text[:300], node or "", line_number, switch is not None,
                )
            )  # fmt: skip
            yield Fact(hw.GPU_XID, float(match[2]), source, scope, note=f"{_bus(match[1])} {text[:160]}")
        elif driver := DRIVER.search(line):
            yield Fact(hw.DRIVER_VERSION, driver[1], source, scope)
        elif limited := LIMITED.search(line):
            yield Fact(hw.PCIE_LIMITED, f"{limited[1]}: {limited[2]}"[:240], source, scope)
        elif LOST.search(line):
            yield Fact(hw.GPU_LOST, line.strip()[:200], source, scope)
        elif FABRIC.search(line):
            yield Fact(hw.FABRIC_FAULT, line.strip()[:200], source, scope)
        elif IOMMU.search(line):
            yield Fact(IOMMU_FAULT, line.strip()[:200], source, scope)
        elif kill := OOM_KILL.search(line):
            yield Fact(PROCESS_KILLED, kill[0][:200], source, scope)
        elif AER.search(line):
            aer, aer_line = aer + 1, aer_line or line_number
    if aer:
        yield Fact(hw.PCIE_ERRORS, float(aer), Source(artifact.name, f"line {aer_line}"))
    if rows:
        yield _table(rows, artifact.name)


def _table(rows: list[tuple[float, int, str, str, str, str, str, int, bool]], file: str) -> Table:
    names = ("time_s", "code", "bus_id", "process", "address", "text", "node", "line", "switch")
    columns = {name: np.array(values) for name, values in zip(names, zip(*rows, strict=True), strict=True)}
    return Table("gpu.xids", columns, Source(file))


def _time_s(line: str) -> float:
    boot = STAMP_BOOT.match(line.split("kernel:")[-1].strip() if "kernel:" in line else line)
    return float(boot[1]) if boot else float("nan")


def _bus(text: str) -> str:
    """0000:01:00 in lower case, without function number and padding."""
    parts = text.lower().split(".")[0].split(":")
    return ":".join([parts[0][-4:], *parts[1:]]) if len(parts) > 2 else text.lower()
