"""Clocks fall because the GPU or its memory is too hot.

## What it means
The driver or the card itself lowers the clock until the temperature stops rising. The reason bits "SW thermal
slowdown" (the driver) and "HW thermal slowdown" (the card) say so; the core, the memory or the board may be the hot
part, and on consumer cards the memory's temperature cannot be read at all.

## Why it costs
Compute-bound work slows in proportion to the clock, and in a job with collectives every other GPU waits for the hot
one.

## What else looks so
A software power cap at the normal limit lowers clocks too, and is how the card is meant to work. Low clocks at idle
are normal. A GPU that is cool, draws little and still clocks low has a lowered power limit or locked clocks.

## Fix
Drain the node, then find what cools badly: fan, blocked airflow, dust, dried-out pads, inlet temperature.
Until then a lower power limit keeps the clock steady at a higher average.

## How the gain is found
The clock it could hold (its own best, or its neighbours') against the clock it holds; compute-bound work gains that
ratio, memory-bound work little.
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
    GPU_CLOCK_FALL,
    GPU_CLOCK_MAX,
    GPU_HW_SLOWDOWN_SHARE,
    GPU_HW_THERMAL_SHARE,
    GPU_POWER_BRAKE_SHARE,
    GPU_SAMPLES,
    GPU_SLOWDOWN_TEMPERATURE,
    GPU_SW_THERMAL_SHARE,
    GPU_TEMPERATURE,
)
from stallwise.evidence.evidence import Evidence
from stallwise.evidence.fact import Fact
from stallwise.units import Unit, show

NOTICEABLE = 0.1  # of loaded samples; a touch of the limit now and then is how boost works
HOT_C = 87.0  # data-centre and consumer cards alike start to slow between 83 and 95 degrees
MUCH_LOWER = 0.1  # where no reason is recorded
LOWER = 0.05  # of the clock; smaller differences lie between healthy cards


@rule(GPU_SAMPLES)
def thermal_throttle(evidence: Evidence) -> Finding | None:
    """Thermal reason bits under load, or a card at its slowdown point with a lower clock."""
    hot = [f for f in _candidates(evidence) if f.number >= NOTICEABLE]
    if not hot:
        return _hot_and_slow(evidence)
    worst = max(hot, key=lambda f: f.number)
    labels = worst.scope.to_dict()
    because = [Reason.of(f"thermal slowdown in {worst.number:.0%} of the samples under load on {_name(worst)}", worst)]
    temperature = evidence.get(GPU_TEMPERATURE, **labels)
    clock = evidence.get(GPU_CLOCK, **labels)
    lower = _loss(evidence, labels)
    cool_core = temperature is not None and temperature.number < HOT_C - 8
    if temperature:
        hidden = ": cool, so memory or board is the hot part" if cool_core else ""
        because.append(Reason.of(f"core at {temperature}{hidden}", temperature))
    if clock:
        because.append(
            Reason.of(f"clock under load {clock}{_below(clock, lower, evidence.get(GPU_CLOCK_MAX, **labels))}", clock)
        )
    return Finding(
        headline=f"{_name(worst)} is too hot and clocks {lower:.0%} lower"
        if lower > LOWER
        else f"{_name(worst)} is held back by heat",
        confidence=0.95 if lower > LOWER else 0.8,
        because=tuple(because),
        scope=worst.scope,
        fixes=(
            Fix(
                "Drain the node and restore its cooling: fans, airflow, dust, thermal pads, inlet temperature.",
                worth=_regained(clock, lower),
                cost="hands on the machine",
            ),
            Fix(
                "Lower the power limit until it is repaired: nvidia-smi -pl WATT",
                worth="a steady clock",
                cost="a few %",
            ),
        ),
        avoid="Do not reset the GPU or reinstall the driver: the bit reports a temperature, not an error.",
        next=(NVIDIA_SMI, NVIDIA_SMI_Q),
        explains=("gpu-fell-off-bus", "straggler-rank"),
    )


def _hot_and_slow(evidence: Evidence) -> Finding | None:
    """No reasons recorded, but a card at its slowdown point that clocks lower than it did or than its neighbours."""
    for heat in evidence.all(GPU_TEMPERATURE):
        labels = heat.scope.to_dict()
        lower = _loss(evidence, labels)
        limit = evidence.value(GPU_SLOWDOWN_TEMPERATURE, HOT_C, **labels)
        clock = evidence.get(GPU_CLOCK, **labels)
        if evidence.get(GPU_SW_THERMAL_SHARE, **labels) or heat.number < limit - 2 or lower < MUCH_LOWER or not clock:
            continue
        return Finding(
            headline=f"{_name(heat)} is at {heat} and clocks {lower:.0%} lower",
            confidence=0.8,
            because=(
                Reason.of(f"core at {heat}", heat),
                Reason.of(f"clock under load {clock}, {lower:.0%} below what it could hold", clock),
            ),
            scope=heat.scope,
            fixes=(
                Fix(
                    "Drain the node and restore its cooling.",
                    worth=_regained(clock, lower),
                    cost="hands on the machine",
                ),
            ),
            avoid="Do not reset the GPU or reinstall the driver.",
            next=(NVIDIA_SMI, NVIDIA_SMI_Q),
            explains=("straggler-rank",),
        )
    return None


def _candidates(evidence: Evidence) -> list[Fact]:
    """The stronger of the two thermal shares of each GPU."""
    best: dict[object, Fact] = {}
    for fact in [*evidence.all(GPU_SW_THERMAL_SHARE), *evidence.all(GPU_HW_THERMAL_SHARE)]:
        if fact.scope not in best or fact.number > best[fact.scope].number:
            best[fact.scope] = fact
    for fact in evidence.all(GPU_HW_SLOWDOWN_SHARE):
        # "HW slowdown" alone is heat or the power brake; at the slowdown temperature it is heat.
        labels = fact.scope.to_dict()
        brake = evidence.value(GPU_POWER_BRAKE_SHARE, 0.0, **labels)
        limit = evidence.value(GPU_SLOWDOWN_TEMPERATURE, HOT_C, **labels)
        heat = evidence.value(GPU_TEMPERATURE, 0.0, **labels)
        if brake == 0 and heat >= limit - 3 and fact.number > best.get(fact.scope, fact).number - 1e-9:
            best[fact.scope] = fact
    return list(best.values())


def _loss(evidence: Evidence, labels: dict[str, object]) -> float:
    return max(evidence.value(GPU_CLOCK_BEHIND, 0.0, **labels), evidence.value(GPU_CLOCK_FALL, 0.0, **labels))


def _below(clock: Fact, lower: float, most: Fact | None) -> str:
    """Against its neighbours or its own past; where there is neither, against the highest clock that the card knows."""
    if lower > 0:
        return f", {lower:.0%} below what it could hold"
    if most is None or most.number <= clock.number:
        return ""
    return f", {1 - clock.number / most.number:.0%} below its highest of {most}"


def _name(fact: Fact) -> str:
    node = f" of {fact.scope.node}" if fact.scope.node else ""
    return f"the GPU{node}" if fact.scope.gpu is None else f"GPU {fact.scope.gpu}{node}"


def _regained(clock: Fact | None, lower: float) -> str:
    """The clock that could be had, where it differs from the one there is."""
    if clock is None or not 0 < lower < 1:
        return "full clocks"
    could = show(clock.number / (1 - lower), Unit.HERTZ)
    return f"{could} instead of {clock}" if could != str(clock) else "full clocks"


# Clocks held back by heat, while only suspected.
CLUES = (
    Clue(
        (GPU_TEMPERATURE,),
        lambda e: any(f.number >= HOT_C for f in e.all(GPU_TEMPERATURE)),
        "fair",
        "a GPU is as hot as its slowdown point",
        "no GPU is hot",
    ),
    Clue(
        (GPU_CLOCK_FALL,),
        lambda e: any(f.number > LOWER for f in e.all(GPU_CLOCK_FALL)),
        "fair",
        "clocks under load fell over time",
        "clocks hold steady",
    ),
    unchanged(),
    yes(
        stated.THROTTLED,
        "strong, needed",
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
