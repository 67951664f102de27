"""`ulimit -a`, /proc/PID/limits, limits.conf and lspci lines: the locked-memory limit and PCIe access control (ACS)."""

from __future__ import annotations

import re
from collections.abc import Iterator

from stallwise.evidence.artifact import Artifact
from stallwise.evidence.catalog.hang import ACS_ENABLED, MEMLOCK_LIMIT
from stallwise.evidence.catalog.hardware import PCIE_ERRORS, PCIE_LIMITED
from stallwise.evidence.evidence import Item
from stallwise.evidence.fact import Fact, Source

FORMAT = "limits and PCIe settings"
CAPTURE = "ulimit -a > limits.txt"

ULIMIT = re.compile(r"max locked memory\s+\((\w+), -l\)\s+(\S+)")
PROC = re.compile(r"^Max locked memory\s+(\S+)\s+(\S+)\s+(\w+)")
CONF = re.compile(r"^\s*\S+\s+(?:soft|hard|-)\s+memlock\s+(\S+)")
ACS = re.compile(r"ACSCtl:\s*(.*)")
REDIRECTS = re.compile(r"(?:SrcValid|ReqRedir|CmpltRedir|UpstreamFwd)\+")
DOWNGRADED = re.compile(r"LnkSta:.*(?:downgraded).*")
AER_COUNT = re.compile(r"TOTAL_ERR_(?:COR|NONFATAL|FATAL)\s+(\d+)")
WORDS = (b"max locked memory", b"Max locked memory", b"ACSCtl:", b"LnkSta:", b"TOTAL_ERR_")
UNITS = {"kbytes": 1024.0, "bytes": 1.0}


def recognises(name: str, head: bytes) -> bool:
    """Lines of these tools."""
    return (
        any(word in head for word in WORDS)
        or re.search(rb"^\S+\s+(?:soft|hard|-)\s+memlock\s", head[:65536], re.M) is not None
    )


def read(artifact: Artifact) -> Iterator[Item]:
    """Facts per line; ACS as the number of bridges that redirect."""
    redirecting = bridges = 0
    first_acs = 0
    aer: float | None = None
    for number, line in enumerate(artifact.lines(), 1):
        source = Source(artifact.name, f"line {number}")
        if match := ULIMIT.search(line):
            yield Fact(MEMLOCK_LIMIT, _bytes(match[2], UNITS.get(match[1], 1024.0)), source)
        elif match := PROC.match(line):
            yield Fact(MEMLOCK_LIMIT, _bytes(match[1], UNITS.get(match[3], 1.0)), source)
        elif match := CONF.match(line):
            yield Fact(MEMLOCK_LIMIT, _bytes(match[1], 1024.0), source)
        elif match := ACS.search(line):
            bridges += 1
            if REDIRECTS.search(match[1]):
                redirecting, first_acs = redirecting + 1, first_acs or number
        elif DOWNGRADED.search(line):
            yield Fact(PCIE_LIMITED, line.strip()[:200], source)
        elif match := AER_COUNT.search(line):
            aer = (aer or 0.0) + float(match[1])
    if bridges:
        yield Fact(ACS_ENABLED, float(redirecting), Source(artifact.name, f"line {first_acs or 1}"), samples=bridges)
    if aer is not None:
        yield Fact(PCIE_ERRORS, aer, Source(artifact.name))


def _bytes(text: str, scale: float) -> float:
    return (
        float("inf")
        if text in ("unlimited", "-1", "infinity")
        else float(text) * scale
        if text.isdigit()
        else float("nan")
    )
