"""Cards are well when, under load, they keep their clocks, nothing throttles them and no error is counted.

This proves the hardware and never the run: a card may be well and its job slow.

Refuted by: the one card of many that is slow, idle, hot or narrow (the worst card counts, for every number), an error of the driver or of
a link beside the samples.
"""

from __future__ import annotations

from stallwise.evidence.capture import NVIDIA_SMI
from stallwise.evidence.catalog import hardware as hw
from stallwise.evidence.evidence import Evidence
from stallwise.evidence.quantity import Quantity
from stallwise.findings.finding import Reason
from stallwise.findings.proof import Proof
from stallwise.findings.step_facts import percent

FEWEST_SAMPLES = 30  # under load; a handful may miss any throttle
HARDLY = 0.5  # of the samples under load
KEPT_CLOCK = 0.95  # of the highest clock
BRIEF = 0.02  # of the samples: a reason that shows for a moment is not what slows a run
THROTTLES: tuple[Quantity, ...] = (
    hw.GPU_HW_SLOWDOWN_SHARE,
    hw.GPU_SW_THERMAL_SHARE,
    hw.GPU_HW_THERMAL_SHARE,
    hw.GPU_POWER_BRAKE_SHARE,
)
ERRORS: tuple[Quantity, ...] = (
    hw.GPU_ECC_UNCORRECTED, hw.GPU_REMAP_PENDING, hw.GPU_REMAP_FAILED, hw.NVLINK_ERRORS, hw.NVLINK_INACTIVE, hw.PCIE_ERRORS,
)  # fmt: skip
MESSAGES: tuple[Quantity, ...] = (
    hw.GPU_LOST,
    hw.XID_BUS,
    hw.XID_MEMORY,
    hw.XID_NVLINK,
    hw.FABRIC_FAULT,
    hw.PCIE_LIMITED,
)


def hardware_state(evidence: Evidence) -> Proof | None:
    """Clocks, reasons, links and errors under load."""
    if not evidence.all(hw.GPU_SAMPLES) and not evidence.all(hw.GPU_UTILISATION):
        return None
    samples = sum(f.number for f in evidence.all(hw.GPU_SAMPLES))
    loads = [f.number for f in evidence.all(hw.GPU_LOADED_SHARE)]
    loaded = min(loads, default=0.0)  # of several cards the one that worked least
    source = tuple(f.source for f in (*evidence.all(hw.GPU_SAMPLES), *evidence.all(hw.GPU_UTILISATION))[:1])
    throttled = [q for q in THROTTLES if any(f.number > BRIEF for f in evidence.all(q))]
    errors = [q for q in ERRORS if any(f.number > 0 for f in evidence.all(q))]
    errors += [q for q in MESSAGES if evidence.all(q)]
    missing = [q.name for q in (hw.GPU_CLOCK, hw.GPU_CLOCK_MAX, hw.GPU_PCIE_WIDTH) if not evidence.all(q)]
    lacks = ""
    if throttled or errors:
        lacks = f"{(throttled or errors)[0].meaning}."
    elif loaded * samples < FEWEST_SAMPLES:
        lacks = (
            "nothing shows whether the cards were at work while they were sampled."
            if not loads
            else "the cards were hardly loaded while they were sampled, which tells nothing about a run."
            if loaded < HARDLY
            else f"{'one sample' if samples == 1 else f'{samples:.0f} samples'} may miss any throttle, and cards tell nothing of the run."
        )
    elif worse := _slow(evidence) or _narrow(evidence):
        lacks = worse
    said = f"{samples:.0f} samples" + (f", loaded in {percent(loaded)} of them" if loads else "")
    tail = f"; not sampled: {', '.join(missing)}" if missing else ""
    return Proof(
        of="hardware",
        says=f"the cards show no throttle and no error ({said}{tail})" if not lacks else f"the cards: {said}",
        because=(Reason(said, source),),
        confidence=0.9,
        lacks=lacks,
        objects=bool(throttled or errors),
        next=(NVIDIA_SMI,) if lacks or missing else (),
        speaks_for_run=False,
    )


def _slow(evidence: Evidence) -> str:
    """The card that keeps least of its own clock, where no power cap that somebody set explains it."""
    kept = {
        scope: evidence.value(hw.GPU_CLOCK, gpu=scope) / most
        for scope in {f.scope.gpu for f in evidence.all(hw.GPU_CLOCK)}
        if (most := evidence.value(hw.GPU_CLOCK_MAX, gpu=scope)) > 0
    }
    capped = max((f.number for f in evidence.all(hw.GPU_POWER_CAP_SHARE)), default=0.0) > BRIEF
    card = min(kept, key=lambda scope: kept[scope], default=None)
    if not kept or capped or not kept[card] < KEPT_CLOCK:
        return ""
    who = f"GPU {card} keeps" if card is not None else "the cards keep"
    return f"{who} {percent(kept[card])} of its highest clock under load."


def _narrow(evidence: Evidence) -> str:
    """A link with fewer lanes than slot and card have."""
    for fact in evidence.all(hw.GPU_PCIE_WIDTH):
        most = evidence.value(hw.GPU_PCIE_WIDTH_MAX, gpu=fact.scope.gpu)
        if fact.number < most:
            return f"GPU {fact.scope.gpu} uses {fact} of {most:.0f} PCIe lanes."
    return ""
