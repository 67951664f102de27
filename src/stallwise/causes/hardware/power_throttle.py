"""The GPU is held below its normal power: a lowered limit, or a power brake from outside.

## What it means
Somebody set a power limit below the card's default, the limit survived from an earlier job, or the chassis pulls the
power-brake signal because a supply is weak or missing. The card then clocks as low as it must.

## Why it costs
Under heavy matrix work power is what sets the clock. Half the power is not half the speed, but at a third of the
default limit a card can drop to its lowest clock. In a job with collectives one such card slows all.

## What else looks so
"SW power cap" at the default limit under full load is normal: every big card runs into its limit in dense matrix
work. A hot card is slowed by heat, not by its limit. An idle card draws little because it has nothing to do.

## Fix
Read the limit and set it back to the default (nvidia-smi -pl), make it persistent, and look for who lowered it. With
the power brake active look at the power supplies.

## How the gain is found
The clock of the neighbours or the card's own clock before, against the clock now.
"""

from __future__ import annotations

from stallwise.doctor.findings.clue import Clue, unchanged, yes
from stallwise.doctor.findings.finding import Finding, Fix, Reason
from stallwise.doctor.findings.rule import rule
from stallwise.evidence.capture import NVIDIA_SMI, NVIDIA_SMI_Q
from stallwise.evidence.catalog import stated
from stallwise.evidence.catalog.hardware import (
    GPU_CLOCK,
    GPU_CLOCK_BEHIND,
    GPU_COOLER,
    GPU_HW_THERMAL_SHARE,
    GPU_POWER,
    GPU_POWER_BEHIND,
    GPU_POWER_BRAKE_SHARE,
    GPU_POWER_CAP_SHARE,
    GPU_POWER_DEFAULT,
    GPU_POWER_LIMIT,
    GPU_POWER_PUBLISHED,
    GPU_SAMPLES,
    GPU_SW_THERMAL_SHARE,
)
from stallwise.evidence.evidence import Evidence
from stallwise.evidence.fact import Fact, Scope

LOWERED = 0.93  # of the default; small reductions are a common and cheap choice for efficiency
FAR_LOWERED = 0.6  # of the published power: no card that shares its name with a weaker twin ships with less
AT_LIMIT = 0.85  # of the limit; a card that draws this much is held by it
BEHIND = 0.2  # of the neighbours' clock or power under the same load
BRAKED = 0.05  # of loaded samples


@rule(GPU_SAMPLES)
def power_throttle(evidence: Evidence) -> Finding | None:
    """A limit below the default that binds, a brake, or a card that draws and clocks far less than its neighbours."""
    verdicts = [v for scope in evidence.scopes("gpu") if (v := _judge(evidence, scope))]
    return max(verdicts, key=lambda f: f.confidence, default=None)


def _judge(evidence: Evidence, scope: Scope) -> Finding | None:
    labels = scope.to_dict()
    limit, default = evidence.get(GPU_POWER_LIMIT, **labels), evidence.get(GPU_POWER_DEFAULT, **labels)
    power, clock = evidence.get(GPU_POWER, **labels), evidence.get(GPU_CLOCK, **labels)
    brake = evidence.get(GPU_POWER_BRAKE_SHARE, **labels)
    name = _name(scope)
    if brake and brake.number >= BRAKED:
        reason = Reason.of(f"power brake active in {brake.number:.0%} of the samples under load", brake)
        return _finding(f"{name} is held by an external power brake", 0.92, [reason], scope, clock, brake=True)
    if (
        limit
        and default
        and limit.number < LOWERED * default.number
        and power
        and power.number >= AT_LIMIT * limit.number
    ):
        because = [Reason.of(f"limit {limit} where the card ships with {default}", limit, default)]
        because.append(Reason.of(f"it draws {power}, so the limit binds", power))
        cap = evidence.get(GPU_POWER_CAP_SHARE, **labels)
        if cap and cap.number > 0:
            because.append(Reason.of("the driver reports the power cap as the reason for the clock", cap))
        return _finding(f"{name} runs at {limit} of its normal {default}", 0.96, because, scope, clock)
    published = evidence.get(GPU_POWER_PUBLISHED, **labels)
    if (
        not default
        and limit
        and published
        and limit.number < FAR_LOWERED * published.number
        and power
        and power.number >= AT_LIMIT * limit.number
    ):
        because = [
            Reason.of(f"limit {limit} on a card that is made for {published}", limit, published),
            Reason.of(f"it draws {power}, so the limit binds", power),
        ]
        return _finding(f"{name} runs at {limit}, made for {published}", 0.85, because, scope, clock)
    return _silent(evidence, scope, clock, power)


def _silent(evidence: Evidence, scope: Scope, clock: Fact | None, power: Fact | None) -> Finding | None:
    """No limit and no reason known: lower clock, lower power and cooler than its neighbours at the same load."""
    labels = scope.to_dict()
    behind, less = evidence.get(GPU_CLOCK_BEHIND, **labels), evidence.get(GPU_POWER_BEHIND, **labels)
    cooler = evidence.get(GPU_COOLER, **labels)
    hot = max(evidence.value(q, 0.0, **labels) for q in (GPU_SW_THERMAL_SHARE, GPU_HW_THERMAL_SHARE))
    if not (behind and less and clock and power) or behind.number < BEHIND or less.number < BEHIND or hot > 0:
        return None
    if cooler is not None and cooler.number < 0:
        return None  # hotter than its neighbours: heat is the likelier reason
    because = [
        Reason.of(f"clock {clock}: {behind.number:.0%} below its neighbours at the same load", clock, behind),
        Reason.of(f"power {power}: {less.number:.0%} below theirs", power, less),
    ]
    if cooler is not None:
        because.append(Reason.of(f"{cooler.number:.0f} degrees cooler, so heat is not the reason", cooler))
    return _finding(
        f"{_name(scope)} is held at low power while its neighbours run free", 0.8, because, scope, clock, silent=True
    )


def _finding(
    headline: str,
    confidence: float,
    because: list[Reason],
    scope: Scope,
    clock: Fact | None,
    *,
    brake: bool = False,
    silent: bool = False,
) -> Finding:
    if clock and not silent:
        because.append(Reason.of(f"clock under load {clock}", clock))
    fixes = [
        Fix(
            "Set the power limit back to the default: nvidia-smi -i GPU -pl WATT (and find who lowered it).",
            worth="the clock of its neighbours",
            cost="seconds; needs root",
        )
    ]
    if brake:
        fixes.insert(
            0, Fix("Check power supplies and chassis power capping.", worth="full clocks", cost="hands on the machine")
        )
    return Finding(
        headline=headline,
        confidence=confidence,
        because=tuple(because),
        scope=scope,
        fixes=tuple(fixes),
        avoid="Do not tune kernels or batch size: the card is slower, not the work.",
        next=(NVIDIA_SMI_Q,) if silent else (NVIDIA_SMI,),
        explains=("straggler-rank",),
    )


def _name(scope: Scope) -> str:
    node = f" of {scope.node}" if scope.node else ""
    return f"GPU {scope.gpu}{node}"


# Clocks held back by power, while only suspected.
CLUES = (
    Clue(
        (GPU_POWER_LIMIT, GPU_POWER_DEFAULT),
        lambda e: e.value(GPU_POWER_LIMIT) < LOWERED * e.value(GPU_POWER_DEFAULT),
        "decisive",
        "the power limit is below the card's default",
        "the power limit is the default",
    ),
    unchanged(),
    yes(
        stated.THROTTLED,
        "fair",
        "a GPU runs at reduced clocks with a throttle reason",
        "no GPU shows a throttle reason",
    ),
    yes(
        stated.GPU_BUSY_UNCHANGED,
        "against",
        "the GPU's own work takes no longer than before",
        "the GPU's own work takes longer",
    ),
)
