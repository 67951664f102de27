"""Peer-to-peer between GPUs over PCIe does not work, usually because of ACS or the IOMMU.

## What it means
With access control (ACS) or an IOMMU in the way, direct reads between GPUs go up to the root complex, or are dropped.
NCCL believes the path works, starts, and waits for ever. A single bad pair of GPUs can also be a faulty link.

## Why it costs
Every job that uses such a pair hangs in its first collective. With peer-to-peer off it runs, over host memory, slower.

## What else looks so
A mismatch of collectives hangs whatever the path. A firewall concerns nodes, not pairs inside one. One pair that
fails alone while all like it work is a broken link rather than a setting.

## Fix
Switch off ACS on the PCIe bridges and the IOMMU (or set iommu=pt) in firmware and kernel, then reboot cold. Until then
run with NCCL_P2P_DISABLE=1. If exactly one pair fails, take that pair out and have the hardware checked.

## How the gain is found
Not in seconds: the job runs. Leaving peer-to-peer off costs the difference of PCIe and host-memory bandwidth.
"""

from __future__ import annotations

from stallwise.doctor.findings.clue import Clue
from stallwise.doctor.findings.finding import Finding, Fix, Reason
from stallwise.doctor.findings.rule import rule
from stallwise.evidence.capture import TOPOLOGY, Capture
from stallwise.evidence.catalog.fabric import NCCL_WRONG
from stallwise.evidence.catalog.hang import (
    ACS_ENABLED,
    HANG_NEVER_WORKED,
    IOMMU_FAULT,
    OTHER_PAIRS_WORK,
    P2P_BROKEN,
    P2P_OFF_WORKS,
)
from stallwise.evidence.evidence import Evidence

CLUES = (
    Clue((P2P_OFF_WORKS,), lambda e: True, "decisive when seen", "it works with peer-to-peer off"),
    Clue((IOMMU_FAULT,), lambda e: True, "fair when seen", "the IOMMU refused device accesses"),
)
ACS = Capture(
    "whether bridges redirect peer traffic", "sudo lspci -vvv | grep -i acsctl; dmesg | grep -iE 'iommu|dmar'", "free"
)


@rule()
def p2p_acs_iommu(evidence: Evidence) -> Finding | None:
    """Pairs that hang, and the same with peer-to-peer off; or a first collective that never ends with ACS on."""
    broken, works = evidence.all(P2P_BROKEN), evidence.all(P2P_OFF_WORKS)
    acs = [f for f in evidence.all(ACS_ENABLED) if f.number > 0]
    faults = evidence.all(IOMMU_FAULT)
    never = evidence.all(HANG_NEVER_WORKED)
    wrong = [f for f in evidence.all(NCCL_WRONG) if f.number > 0]
    if not broken and not wrong and not (never and (acs or faults or works)):
        return None
    because = [Reason.of(str(f.value), f) for f in [*broken[:2], *works[:2]]]
    because += [Reason.of(f"{f} values came out wrong in a collective test", f) for f in wrong[:1]]
    because += [Reason.of(f"{f} PCIe bridges redirect peer traffic (ACS)", f) for f in acs[:1]]
    because += [Reason.of(str(f.value), f) for f in faults[:1]]
    single = bool(broken) and broken[0].samples == 1 and broken[0].note == OTHER_PAIRS_WORK
    return Finding(
        headline="One GPU pair cannot talk peer-to-peer: a faulty link"
        if single
        else "Peer-to-peer between GPUs is broken: ACS or IOMMU in the way",
        confidence=0.95 if works or (broken and acs) else 0.85 if broken else 0.75 if never else 0.6,
        because=tuple(because),
        fixes=_fixes(single),
        avoid="Do not debug the program or the collective: a bare pair test hangs as well.",
        next=(ACS, TOPOLOGY),
        explains=("transport-never-worked", "collective-mismatch", "pcie-instead-of-nvlink"),
        blocking=True,
    )


def _fixes(single: bool) -> tuple[Fix, ...]:
    setting = Fix(
        "Switch off ACS on the bridges and the IOMMU (or iommu=pt), then power-cycle.",
        worth="peer-to-peer works",
        cost="a firmware setting and a reboot",
        risk="weakens isolation of virtual machines",
    )
    off = Fix("Until then run with NCCL_P2P_DISABLE=1.", worth="runs, at host-memory speed", cost="slower collectives")
    pair = Fix(
        "Take that pair out of use and have board, riser or bridge checked.", worth="the rest runs", cost="a GPU"
    )
    return (pair, off, setting) if single else (setting, off)
