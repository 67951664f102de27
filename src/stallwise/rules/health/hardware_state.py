"""Cards are well when, under load, they keep their clocks, nothing throttles them and no error is counted.

This proves the hardware and never the run: a card may be well and its job slow.
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
ERRORS: tuple[Quantity, ...] = (hw.GPU_ECC_UNCORRECTED, hw.GPU_REMAP_PENDING, hw.GPU_REMAP_FAILED)


def hardware_state(evidence: Evidence) -> Proof | None:
    """Clocks, reasons, links and errors under load."""
    if not evidence.all(hw.GPU_SAMPLES) and not evidence.all(hw.GPU_UTILISATION):
        return None
    samples = sum(f.number for f in evidence.all(hw.GPU_SAMPLES))
    loads = [f.number for f in evidence.all(hw.GPU_LOADED_SHARE)]
    loaded = max(loads, default=0.0)
    source = tuple(f.source for f in (*evidence.all(hw.GPU_SAMPLES), *evidence.all(hw.GPU_UTILISATION))[:1])
    throttled = [q for q in THROTTLES if any(f.number > BRIEF for f in evidence.all(q))]
    errors = [q for q in ERRORS if any(f.number > 0 for f in evidence.all(q))]
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
    elif _slow(evidence):
        lacks = "the clocks stay below the card's own."
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


def _slow(evidence: Evidence) -> bool:
    clock, most = evidence.value(hw.GPU_CLOCK), evidence.value(hw.GPU_CLOCK_MAX)
    capped = max((f.number for f in evidence.all(hw.GPU_POWER_CAP_SHARE)), default=0.0) > BRIEF
    return clock == clock and most == most and clock < KEPT_CLOCK * most and not capped
