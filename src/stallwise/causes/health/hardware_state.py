"""What samples of the cards show of the cards themselves: load, clocks, throttling, heat, links and errors.

This proves the hardware and never the run: a card may be well and its job slow. An idle card is said to be idle; one that
waits most of a recording, or stands idle beside busy ones with their memory full, is no proof of anything well.

Refuted by: the one card of many that is slow, idle, hot or narrow (the worst card counts, for every number), an error of the driver or
of a link beside the samples.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from stallwise.causes.health._cards import MIB, Card, cards_in, described, limited_links, not_sampled
from stallwise.doctor.findings.finding import Reason
from stallwise.doctor.findings.proof import Proof
from stallwise.evidence.capture import NVIDIA_SMI, ROCM_SMI, TORCH_TRACE, TRAIN_LOG, Capture
from stallwise.evidence.catalog import hardware as hw
from stallwise.evidence.evidence import Evidence
from stallwise.evidence.quantity import Quantity
from stallwise.late import np

FEWEST_SAMPLES = 30  # of a recording; fewer are moments
LITTLE = 0.05  # busy: what a display or a context takes
HARDLY = 0.02  # of the samples: at work so seldom, a card is idle
MOSTLY = 0.8  # of the samples: at work so often, a card is busy
KEPT_CLOCK = 0.8  # of the highest clock; consumer cards list one that they never hold under load
AT_LIMIT = 0.9  # of the power limit: what draws so much is held by it, whoever records the reason
BRIEF = 0.02  # of the samples: a reason that shows for a moment is not what slows a run
FEWEST_PEERS = 3  # cards: of two nobody knows which is the odd one
HOT_C = 85.0  # data-centre cards slow down from 83 to 90 C
HOLDS_WORK_BYTES = 1 << 30  # a context alone takes a few hundred MiB
MOST_ROWS = 16
STATE_COLUMNS = ("utilisation_share", "temperature_c", "power_w", "clock_sm_hz", "reasons", "ecc_uncorrected")
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
    """Every card with its numbers, and what stands against calling them well."""
    cards = cards_in(evidence)
    if not cards:
        return _stated(evidence)
    wrong = _out_of_line(evidence, cards)
    lacks, wanted = (wrong, (NVIDIA_SMI,)) if wrong else _unexplained(cards)
    summary = f"{_titled(cards)}: {described(cards)}"
    tail = not_sampled(cards)
    sources = tuple(dict.fromkeys(s for c in cards for s in c.sources))
    rows = [Reason(f"{c.label}: {described([c])}", c.sources) for c in cards] if len(cards) > 1 else []
    return Proof(
        of="hardware",
        says=f"{summary}; {tail}" if tail else summary,
        because=(*rows[:MOST_ROWS], Reason(summary, sources)),
        confidence=0.9,
        lacks=lacks,
        objects=bool(wrong),
        next=tuple(
            _of_maker(c, cards, evidence) for c in wanted or ((NVIDIA_SMI,) if tail or not _at_work(cards) else ())
        ),
        covers_run=False,
    )


def _stated(evidence: Evidence) -> Proof | None:
    """A load that somebody names is no sample."""
    busy = evidence.all(hw.GPU_UTILISATION)
    if not busy:
        return None
    summary = f"the cards are {busy[0]} busy"
    lacks = "nothing shows whether the cards were at work while they were sampled."
    return Proof(
        "hardware", summary, (Reason.of(summary, busy[0]),), 0.9, lacks=lacks, next=(NVIDIA_SMI,), covers_run=False
    )


def _out_of_line(evidence: Evidence, cards: Sequence[Card]) -> str:
    """An error, a throttle or a low clock, the weightiest first."""
    for quantity in (*ERRORS, *THROTTLES):
        worst = max(evidence.all(quantity), key=lambda f: f.number, default=None)
        if worst is not None and worst.number > (BRIEF if quantity in THROTTLES else 0.0):
            of = f" on GPU {worst.scope.gpu}" if worst.scope.gpu is not None else ""
            share = f" in {worst.number:.0%} of the samples" if quantity in THROTTLES else f" ({worst})"
            return f"{quantity.meaning}{of}{share}."
    for quantity in MESSAGES:
        found = limited_links(evidence) if quantity is hw.PCIE_LIMITED else evidence.all(quantity)
        if message := next(iter(found), None):
            return f"{quantity.meaning} ({message})."
    slow = next((c for c in cards if _slow(evidence, c)), None)
    if slow:
        return f"{slow.label} stays below its own clock under load ({described([slow])})."
    if odd := _unlike_peers(cards):
        return odd
    hot = max(cards, key=lambda c: c.most("temperature_c") if len(c.known("temperature_c")) else -np.inf)
    if hot.most("temperature_c") > HOT_C:
        return f"{hot.label} is at {hot.most('temperature_c'):.0f} C."
    narrow = next((c for c in cards if c.most("pcie_width") < c.most("pcie_width_max")), None)
    if narrow is None or narrow.busy_share <= HARDLY:  # an idle link saves power
        return ""
    return f"{narrow.label} uses {narrow.most('pcie_width'):.0f} of {narrow.most('pcie_width_max'):.0f} PCIe lanes."


def _unlike_peers(cards: Sequence[Card]) -> str:
    """One card of several at work that runs far below the clock of the others."""
    clocks = {c.label: c.typical("clock_sm_hz") for c in cards if c.busy_share != c.busy_share or c.busy_share > HARDLY}
    clocks = {label: clock for label, clock in clocks.items() if clock == clock}
    if len(clocks) < FEWEST_PEERS:
        return ""
    slowest, usual = min(clocks, key=lambda label: clocks[label]), float(np.median(list(clocks.values())))
    if clocks[slowest] >= KEPT_CLOCK * usual:
        return ""
    return f"{slowest} runs at {clocks[slowest] / 1e6:.0f} MHz where the others have {usual / 1e6:.0f} MHz."


def _unexplained(cards: Sequence[Card]) -> tuple[str, tuple[Capture, ...]]:
    """What these files leave open, which another may answer, and which."""
    if not any(len(c.known(column)) for c in cards for column in STATE_COLUMNS):
        return "nothing in this file tells of load, heat, power, clocks or errors of the cards.", (NVIDIA_SMI,)
    if unjudged := next((c for c in cards if not _judged(c)), None):
        return (
            f"{described([unjudged])}: neither a limit nor a throttle reason says whether {unjudged.label} is held back.",
            (NVIDIA_SMI,),
        )
    if alone := _idle_beside(cards):
        return alone, (TRAIN_LOG, NVIDIA_SMI)
    if held := _held_by_power(cards):
        return held, (NVIDIA_SMI,)
    if waits := _waits(cards):
        return waits, (TRAIN_LOG, TORCH_TRACE)
    return "", ()


def _idle_beside(cards: Sequence[Card]) -> str:
    """Cards that stand idle with work in their memory while others beside them are busy."""
    known = [c for c in cards if c.busy_share == c.busy_share]
    busy = [c for c in known if c.busy_share >= MOSTLY]
    idle = [c for c in known if c.busy_share <= HARDLY and c.most("memory_used_bytes") >= HOLDS_WORK_BYTES]
    if not busy or not idle:
        return ""
    who = ", ".join(c.label for c in idle[:4]) + (" and others" if len(idle) > 4 else "")
    held = max(c.most("memory_used_bytes") for c in idle) / MIB
    is_ = "is" if len(idle) == 1 else "are"
    return f"{who} {is_} idle with {held:.0f} MiB held while {_count(len(busy), 'other card')} {'is' if len(busy) == 1 else 'are'} busy."


def _judged(card: Card) -> bool:
    """Whether the file holds what a value is to be compared with: a reason, a highest clock, a power limit, or a card at rest."""
    limits = (("reasons", "reasons"), ("clock_sm_hz", "clock_sm_max_hz"), ("power_w", "power_limit_w"))
    at_rest = card.typical("utilisation_share") <= LITTLE
    load_alone = (
        len(card.known("utilisation_share")) and not len(card.known("power_w")) and not len(card.known("clock_sm_hz"))
    )
    compared = any(len(card.known(a)) and len(card.known(b)) for a, b in limits)
    return bool(at_rest or compared or load_alone)


def _held_by_power(cards: Sequence[Card]) -> str:
    """A power cap is in line where the clock is known and kept; else it may be what slows the run."""
    for card in cards:
        limit, drawn = card.most("power_limit_w"), card.typical("power_w")
        capped = any(reason.startswith("SW power cap") for reason in card.held)
        if capped and drawn >= AT_LIMIT * limit and not len(card.known("clock_sm_hz")):
            return f"{card.label} draws {drawn:.0f} W of its limit of {limit:.0f} W and is held by it; which clock that leaves is not in this file."
    return ""


def _waits(cards: Sequence[Card]) -> str:
    """A recording in which a card works now and then: what it waits for is not in it."""
    for card in cards:
        use = card.known("utilisation_share")
        if LITTLE < card.typical("utilisation_share") < MOSTLY and card.samples < FEWEST_SAMPLES:
            return (
                f"{card.label} is {card.typical('utilisation_share'):.0%} busy; what it waits for is not in this file."
            )
        held = card.most("memory_used_bytes")
        if card.samples >= FEWEST_SAMPLES and card.busy_share <= HARDLY and held >= HOLDS_WORK_BYTES:
            return (
                f"{card.label} is idle in nearly all of {card.samples} samples with up to {held / MIB:.0f} MiB held; "
                "what it waits for is not in this file."
            )
        if card.samples >= FEWEST_SAMPLES and HARDLY < card.busy_share < MOSTLY:
            return (
                f"{card.label} is at least half busy in {card.busy_share:.0%} of {card.samples} samples and at most 10% busy in "
                f"{float((use <= 0.1).mean()):.0%} of them (median {card.typical('utilisation_share'):.0%}); "
                "what it waits for is not in this file."
            )
    return ""


def _slow(evidence: Evidence, card: Card) -> bool:
    labels = card.scope.to_dict()
    clock, most = evidence.value(hw.GPU_CLOCK, **labels), evidence.value(hw.GPU_CLOCK_MAX, **labels)
    draws = evidence.value(hw.GPU_POWER, 0.0, **labels) >= AT_LIMIT * evidence.value(
        hw.GPU_POWER_LIMIT, np.inf, **labels
    )
    limited = evidence.value(
        hw.GPU_POWER_LIMIT, **labels
    )  # a cap far below the limit is somebody else's: a brake, a broken supply
    capped = draws or (limited != limited and evidence.value(hw.GPU_POWER_CAP_SHARE, 0.0, **labels) > BRIEF)
    return clock == clock and most == most and clock < KEPT_CLOCK * most and not capped


def _of_maker(capture: Capture, cards: Sequence[Card], evidence: Evidence) -> Capture:
    """The same with the tool that this machine has."""
    amd = "rocm-smi" in evidence.formats or any(c.name.startswith(("AMD", "Instinct", "Radeon")) for c in cards)
    return ROCM_SMI if capture is NVIDIA_SMI and amd else capture


def _at_work(cards: Sequence[Card]) -> bool:
    return any(c.busy_share >= MOSTLY for c in cards)


def _titled(cards: Sequence[Card]) -> str:
    """ "8 NVIDIA H200 idle", "4 A100, 150 samples each"; idle beside busy ones are counted."""
    names = Counter(c.name or "card" for c in cards)
    who = " and ".join(
        f"{n} {name}{'s' if name == 'card' and n > 1 else ''}" if n > 1 else f"one {name}" for name, n in names.items()
    )
    known = [c for c in cards if c.busy_share == c.busy_share]
    idle = [c for c in known if c.busy_share <= HARDLY and c.typical("utilisation_share") <= LITTLE]
    state = " idle" if idle and len(idle) == len(cards) else f" ({len(idle)} of them idle)" if idle else ""
    most = max(c.samples for c in cards)
    times = (
        f", {most} samples each"
        if most > 1 and len(cards) > 1
        else f", {most} samples"
        if most > 1
        else " at one moment"
    )
    return f"{who}{state}{times}"


def _count(number: int, what: str) -> str:
    return f"one {what}" if number == 1 else f"{number} {what}s"
