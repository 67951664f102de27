"""NVLink or NVSwitch reports errors, or links that should be up are down.

## What it means
The link layer could not deliver data (Xid 74 and 144 to 150, SXid of the switch), links of one GPU are inactive while
those of its neighbours are up, or the fabric manager did not bring the fabric up.

## Why it costs
Peer traffic stops or falls back to PCIe, and programs that use all GPUs hang or die. One bad link stops the whole
NVSwitch domain, since its traffic is spread over all links.

## What else looks so
Xid 45 on the other GPUs only cleans up after the first error. A hang with no driver message at all is more often
software. Cards without NVLink have no links to lose.

## Fix
Find the odd one out (the GPU with the fatal code, or the inactive links), drain the node, reboot, check that the
fabric manager runs with the driver's version, run the vendor's diagnostic; return the part if the same link repeats.

## How the gain is found
Not in seconds: collectives on that node cannot be trusted until it is repaired.
"""

from __future__ import annotations

from stallwise.doctor.findings.clue import Clue
from stallwise.doctor.findings.finding import Finding, Fix, Reason
from stallwise.doctor.findings.rule import rule
from stallwise.evidence.capture import DMESG, Capture
from stallwise.evidence.catalog.hardware import (
    FABRIC_FAULT,
    NVLINK_ACTIVE,
    NVLINK_ERRORS,
    NVLINK_INACTIVE,
    XID_CONSEQUENCE,
    XID_NVLINK,
    XID_ORDER,
)
from stallwise.evidence.evidence import Evidence
from stallwise.evidence.fact import Fact

MANY_ERRORS = 1000  # replays and CRC errors since boot; a few happen on healthy links
CLUES = (Clue((XID_NVLINK,), lambda e: True, "decisive when seen", "the driver logged NVLink errors"),)
LINKS = Capture("the state and error counters of all NVLinks", "nvidia-smi nvlink -s; nvidia-smi nvlink -e", "free")


@rule()
def nvlink_fault(evidence: Evidence) -> Finding | None:
    """Driver codes, fabric manager, inactive links beside active ones, many replays."""
    codes, fabric = evidence.all(XID_NVLINK), evidence.all(FABRIC_FAULT)
    down = _odd_links(evidence)
    noisy = [f for f in evidence.all(NVLINK_ERRORS) if f.number >= MANY_ERRORS]
    if not (codes or fabric or down or noisy):
        return None
    codes = sorted(codes, key=lambda f: not _fatal(evidence, f))
    because = [Reason.of(_with_words(f), f) for f in codes[:4]]
    because += [Reason.of(str(f.value), f) for f in fabric[:2]]
    because += [Reason.of(f"GPU {f.scope.gpu}: links are down while other GPUs' links are up", f) for f in down[:3]]
    because += [Reason.of(f"{f} link errors ({f.note})", f) for f in noisy[:2]]
    because += [Reason.of(str(f.value), f) for f in evidence.all(XID_ORDER)]
    first = (codes or fabric or down or noisy)[0]
    follows = [Reason.of(f"{f.value}", f) for f in evidence.all(XID_CONSEQUENCE)[:2]]
    return Finding(
        headline=_headline(codes, fabric, down),
        confidence=0.95 if codes or (down and fabric) else 0.85 if down or fabric else 0.6,
        because=tuple(because),
        scope=first.scope,
        fixes=(
            Fix(
                "Drain the node and reboot it; check that the fabric manager runs and matches the driver.",
                worth="the fabric comes up",
                cost="minutes",
            ),
            Fix(
                "Run the vendor's diagnostic on the GPU that is the odd one out; return it if the same link repeats.",
                cost="a replacement",
            ),
        ),
        not_here=tuple(follows),
        avoid="Do not change the collective or its timeout: the wire under it is broken.",
        next=(LINKS, DMESG),
        explains=(
            "collective-mismatch",
            "rank-died-first",
            "straggler-rank",
            "transport-never-worked",
            "application-fault",
        ),
        blocking=True,
    )


def _odd_links(evidence: Evidence) -> list[Fact]:
    """GPUs with more links down than another has. Of one GPU alone, or of all alike, some are down by design: not all cards wire all."""
    inactive = [f for f in evidence.all(NVLINK_INACTIVE) if any(a.number > 0 for a in evidence.all(NVLINK_ACTIVE))]
    fewest = min((f.number for f in inactive), default=0.0)
    return [f for f in inactive if f.number > fewest]


def _fatal(evidence: Evidence, fact: Fact) -> bool:
    event = evidence.at(fact.source)
    return event is not None and event.word("severity").lower() == "fatal"


def _with_words(fact: Fact) -> str:
    words = fact.note.split("(")[0].strip()
    return f"{fact.value}" + (f" [{words}]" if words else "")


def _headline(codes: list[Fact], fabric: list[Fact], down: list[Fact]) -> str:
    if codes:
        return f"NVLink failed: {str(codes[0].value).partition(': ')[0]}"
    if down:
        return f"NVLinks of GPU {down[0].scope.gpu} are down"
    if fabric:
        return "The NVLink fabric did not come up"
    return "NVLinks repeat far more data than they should"
