"""The PCIe link of a busy GPU runs slower or narrower than slot and card allow.

## What it means
Under load the link trained to a lower generation or fewer lanes than both ends support: a bad contact, riser or
cable, a slot shared or wired with fewer lanes, or a firmware setting.

## Why it costs
Host-to-device copies, offloading, and all traffic to NICs and to peers without NVLink shrink in proportion: x16 to x4
is a quarter, Gen5 to Gen2 an eighth.

## What else looks so
An idle GPU lowers its link on purpose to save power; only samples under load count. A slot that was never wired for
more lanes is a choice, not a fault.

## Fix
Compare with the neighbours under load, reseat the card, change riser or slot, set the generation in the firmware
instead of "auto", and look at the kernel's PCIe errors.

## How the gain is found
Copies speed up by the ratio of the two bandwidths; the step gains only what of them is exposed.
"""

from __future__ import annotations

from stallwise.causes.health._cards import limited_links
from stallwise.doctor.findings.clue import Clue
from stallwise.doctor.findings.finding import Finding, Fix, Reason
from stallwise.doctor.findings.rule import rule
from stallwise.evidence.capture import DMESG, NVIDIA_SMI
from stallwise.evidence.catalog.hardware import (
    GPU_PCIE_GEN,
    GPU_PCIE_GEN_MAX,
    GPU_PCIE_REPLAYS,
    GPU_PCIE_WIDTH,
    GPU_PCIE_WIDTH_MAX,
    PCIE_ERRORS,
)
from stallwise.evidence.evidence import Evidence
from stallwise.evidence.fact import Fact, Scope

MANY_ERRORS = 100  # corrected PCIe errors in one log; a few are normal
MOST_GENERATIONS = 8  # between two that are spoken of in one file
CLUES = (
    Clue(
        (GPU_PCIE_GEN, GPU_PCIE_GEN_MAX),
        lambda e: e.value(GPU_PCIE_GEN) < e.value(GPU_PCIE_GEN_MAX),
        "strong",
        "the link runs below its generation under load",
        "the link runs at full speed under load",
    ),
)


@rule()
def pcie_link_downgrade(evidence: Evidence) -> Finding | None:
    """Generation or width under the maximum while loaded; or less than every neighbour's; or the kernel's own line."""
    slow = [s for scope in evidence.scopes("gpu") if (s := _slow(evidence, scope))]
    limited = limited_links(evidence)
    errors = [f for f in evidence.all(PCIE_ERRORS) if f.number >= MANY_ERRORS]
    if not slow and not limited and not errors:
        return None
    if not slow:
        return _from_kernel(limited, errors)
    scope, ratio, facts, text = max(slow, key=lambda s: s[1])
    because = [Reason.of(text, *facts)]
    because += [Reason.of(f"the kernel saw it too: {f.value}", f) for f in limited[:1]]
    because += [Reason.of(f"{f} PCIe errors in the kernel log", f) for f in errors[:1]]
    replays = [f for f in evidence.all(GPU_PCIE_REPLAYS) if f.scope == scope and f.number > 0]
    because += [Reason.of(f"{f} packets sent again", f) for f in replays]
    node = f" of {scope.node}" if scope.node else ""
    return Finding(
        headline=f"GPU {scope.gpu}{node} has 1/{ratio:.0f} of its PCIe bandwidth under load",
        confidence=0.93,
        because=tuple(because),
        scope=scope,
        fixes=_fixes(f"{ratio:.0f}x faster copies"),
        avoid="Do not judge the link at idle: the driver lowers it there on purpose.",
        next=(NVIDIA_SMI, DMESG),
        explains=("gpu-fell-off-bus", "h2d-copy-exposed"),
    )


def _slow(evidence: Evidence, scope: Scope) -> tuple[Scope, float, list[Fact], str] | None:
    labels = scope.to_dict()
    gen = evidence.get(GPU_PCIE_GEN, **labels)
    if gen is None:
        return None  # never seen under load
    gen_max = evidence.get(GPU_PCIE_GEN_MAX, **labels)
    width, width_max = evidence.get(GPU_PCIE_WIDTH, **labels), evidence.get(GPU_PCIE_WIDTH_MAX, **labels)
    ratio, words = 1.0, []
    facts = [gen]
    if gen_max and gen.number < gen_max.number:
        ratio *= 2 ** min(gen_max.number - gen.number, MOST_GENERATIONS)  # each generation doubles the rate
        words.append(f"Gen{gen.number:.0f} of Gen{gen_max.number:.0f}")
        facts.append(gen_max)
    elif gen_max is None and (best := _neighbours(evidence, scope)) > gen.number:
        ratio *= 2 ** min(best - gen.number, MOST_GENERATIONS)
        words.append(f"Gen{gen.number:.0f} where its neighbours run Gen{best:.0f}")
    if width and width_max and 0 < width.number < width_max.number:
        ratio *= width_max.number / width.number
        words.append(f"x{width.number:.0f} of x{width_max.number:.0f}")
        facts.append(width)
    if not words:
        return None
    return scope, ratio, facts, f"under load the link runs at {' and '.join(words)} ({gen.samples} samples)"


def _neighbours(evidence: Evidence, scope: Scope) -> float:
    others = [f.number for f in evidence.all(GPU_PCIE_GEN) if f.scope != scope]
    return max(others, default=0.0) if len(others) >= 2 else 0.0


def _from_kernel(limited: list[Fact], errors: list[Fact]) -> Finding:
    because = [Reason.of(str(f.value), f) for f in limited[:2]]
    because += [Reason.of(f"{f} PCIe errors in the kernel log", f) for f in errors[:1]]
    return Finding(
        headline="A PCIe link is slower than its device" if limited else "The kernel logs many PCIe errors",
        confidence=0.45 if limited else 0.6,  # at boot a link may still train up, and some slots are wired narrow
        because=tuple(because),
        fixes=_fixes("faster copies"),
        next=(NVIDIA_SMI, DMESG),
    )


def _fixes(worth: str) -> tuple[Fix, ...]:
    return (
        Fix(
            "Reseat the card, change riser, cable or slot; compare the link under load again.",
            worth=worth,
            cost="hands on the machine",
        ),
        Fix(
            "Fix the link generation in the system firmware instead of leaving it on auto.",
            worth=worth,
            cost="a reboot",
        ),
    )
