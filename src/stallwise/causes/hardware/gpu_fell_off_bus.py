"""The driver can no longer reach the GPU: it is lost until a reset or a reboot.

## What it means
The GPU stopped answering on PCIe (Xid 79), or its own system processor did (Xid 119, 120). Reads return all ones, every
process on it dies, and nvidia-smi reports the GPU as lost or waits for it.

## Why it costs
The job on that node is dead, and with it every job it was a rank of. A node that came back once often falls again.

## What else looks so
A program that crashed with an illegal address leaves the GPU alive. A GPU that was hot or braked before it vanished
was brought down by heat or power. A driver reload or a container without the device also hides a GPU.

## Fix
Drain the node and power-cycle it (a warm reset is often not enough). Then in this order: power connectors and
supplies, seating and riser or cable, temperatures just before, system firmware, driver. Return the card if it repeats.

## How the gain is found
Not in seconds: the rank is gone. The worth is the job.
"""

from __future__ import annotations

from stallwise.doctor.findings.clue import Clue
from stallwise.doctor.findings.finding import Finding, Fix, Reason
from stallwise.doctor.findings.rule import rule
from stallwise.evidence.capture import DMESG, LSPCI, NVIDIA_SMI_Q
from stallwise.evidence.catalog.hardware import (
    GPU_LOST,
    GPU_TEMPERATURE,
    PCIE_ERRORS,
    PCIE_LIMITED,
    XID_BUS,
    XID_CONSEQUENCE,
    XID_ORDER,
)
from stallwise.evidence.evidence import Evidence

COOL_C = 70.0  # well below any slowdown point
CLUES = (
    Clue((GPU_LOST,), lambda e: True, "decisive when seen", "the driver says the GPU is lost"),
    Clue((XID_BUS,), lambda e: True, "decisive when seen", "the driver logged that the GPU left the bus"),
)


@rule()
def gpu_fell_off_bus(evidence: Evidence) -> Finding | None:
    """Xid 79 and its relatives, or the driver's own words that a GPU is lost."""
    codes, lost = evidence.all(XID_BUS), evidence.all(GPU_LOST)
    if not codes and not lost:
        return None
    because = [Reason.of(str(f.value), f) for f in codes[:3]] + [Reason.of(str(f.value), f) for f in lost[:2]]
    clues = []
    temperatures = evidence.all(GPU_TEMPERATURE)
    if temperatures and max(f.number for f in temperatures) < COOL_C:
        clues.append(Reason.of(f"heat: it was at {max(temperatures, key=lambda f: f.number)}", *temperatures[:1]))
    if quiet := [f for f in evidence.all(PCIE_ERRORS) if f.number == 0]:
        clues.append(Reason.of("the link: no PCIe errors were counted", *quiet))
    because += [
        Reason.of(f"its PCIe link was slower than the card: {f.value}", f) for f in evidence.all(PCIE_LIMITED)[:1]
    ]
    because += [Reason.of(str(f.value), f) for f in evidence.all(XID_ORDER)]
    if mixed := _mixed(evidence):
        because.append(mixed)
    follows = [Reason.of(f"{f.value}: follows the loss", f) for f in evidence.all(XID_CONSEQUENCE)[:2]]
    first = (codes or lost)[0]
    return Finding(
        headline="A GPU fell off the bus: the driver lost it" if codes else "The driver cannot reach a GPU",
        summary=str(first.value),
        confidence=0.96 if codes else 0.85,
        because=tuple(because),
        against=tuple(clues),
        scope=first.scope,
        fixes=(
            Fix("Drain the node and power-cycle it.", worth="the GPU comes back", cost="minutes"),
            Fix(
                "Check power connectors and supplies, seating, riser or cable, then system firmware and driver.",
                worth="it stays",
                cost="hands on the machine",
            ),
            Fix("Return the card if it falls off again in another slot.", cost="a replacement"),
        ),
        not_here=tuple(follows),
        avoid="Do not debug the program: its CUDA errors are the consequence of a missing device.",
        next=(LSPCI, DMESG, NVIDIA_SMI_Q),
        explains=("rank-died-first", "application-fault", "gpu-memory-errors"),
        blocking=True,
    )


def _mixed(evidence: Evidence) -> Reason | None:
    """Two versions of the driver on one machine: that keeps a card from coming back."""
    mismatches = [e for e in evidence.events_of("driver-fault", "driver-mismatch") if "mismatch" in e.text.lower()]
    if not mismatches:
        return None
    times = sum(e.times for e in mismatches if e.times > 1) or len(mismatches)
    return Reason(
        f"the driver is installed in two versions, which its module refused {times} times: {mismatches[0].text[:120]}",
        (mismatches[0].source,),
    )
