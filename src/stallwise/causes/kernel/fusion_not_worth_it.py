"""A fused kernel of one's own is slower than the library path it replaced.

## What it means
Fusing saves the traffic of an intermediate, but the product inside the fused kernel runs below the library's rate. For a
large product the saved bytes are a few per cent of its time; the lost rate is far more.

## Why it costs
The time lost in the product exceeds what fusion can save at best, whatever the configuration.

## What else looks so
A search over too few configurations can miss a good one: with a wide sweep whose best still loses, that is ruled out. For
small or memory-bound products fusion does pay.

## Fix
Keep the library product and fuse the cheap operation elsewhere: into its producer, the epilogue the library offers, or leave it
to the compiler.

## How the gain is found
Best fused time against the library path; the most that fusing could save is the intermediate's bytes over the bandwidth.
"""

from __future__ import annotations

from stallwise.doctor.findings.clue import above, below
from stallwise.doctor.findings.finding import Finding, Fix, Gain, Reason
from stallwise.doctor.findings.rule import rule
from stallwise.evidence.capture import NCU, TORCH_TRACE
from stallwise.evidence.catalog import autotune as a
from stallwise.evidence.catalog import stated
from stallwise.evidence.evidence import Evidence
from stallwise.units import Unit, show

LOSES = 1.05  # times the library path: more than the noise of timing
WIDE = 24  # timed configurations over at least three axes

SMALL_PART = 0.1  # of the unfused time: fusing it away wins at most this

CLUES = (
    above(
        stated.WIDE_SEARCH_SPEEDUP, 1.0, "against",
        "a wide search beats the library", "even the best configuration of a wide search loses to the library",
    ),
    below(stated.CHEAP_OP_SHARE, SMALL_PART, "fair", "the fused operation was cheap to begin with", "the fused operation was costly"),
    below(stated.AUTOTUNE_CONFIGS, 8, "against", "few configurations were tried", "many configurations were tried"),
)  # fmt: skip


@rule()
def fusion_not_worth_it(evidence: Evidence) -> Finding | None:
    """Judges a sweep against the library path, or what was stated of one."""
    best, library = evidence.value(a.BEST), evidence.value(a.LIBRARY)
    timed, axes = evidence.value(a.TIMED, 0.0), evidence.value(a.AXES_VARIED, 0.0)
    if best != best or library != library or min(best, library) <= 0 or not timed:
        return _stated(evidence)
    if best < LOSES * library:
        return None
    wide = timed >= WIDE and axes >= 3
    limit = evidence.get(a.FUSION_LIMIT)
    small = limit is not None and limit.number < 0.2 * library
    lost = best - library
    return Finding(
        headline=f"no configuration wins: the best of {timed:.0f} takes {show(best, Unit.SECOND)}, the library path "
        f"{show(library, Unit.SECOND)}",
        confidence=0.93 if wide and (small or limit is None) else 0.8 if wide else 0.55,
        because=_because(evidence, best, library, wide),
        gain=Gain(0.9 * lost, lost, "best fused time less the library path"),
        fixes=(
            Fix("use the library path", gain=Gain(0.9 * lost, lost, "measured"), cost="delete the kernel"),
            Fix(
                "fuse the cheap operation into its producer or the library's epilogue", worth=_worth(evidence, library)
            ),
        ),
        avoid="Do not widen the search: the product inside cannot reach the library's rate."
        if wide
        else "Do not conclude from a narrow search.",
        explains=("autotune-space-too-small",) if wide else (),
        summary=_summary(evidence, library),
    )


def _stated(evidence: Evidence) -> Finding | None:
    """The same from what people say: the best of a wide search still loses."""
    speed, wide, cheap = (
        evidence.get(q) for q in (stated.CUSTOM_SPEEDUP, stated.WIDE_SEARCH_SPEEDUP, stated.CHEAP_OP_SHARE)
    )
    if speed is None or wide is None or not (speed.number < 1.0 and 0 < wide.number < 1.0):
        return None
    reasons = [Reason.of(f"the best of a wide search reaches {wide} of the library path", wide)]
    small = cheap is not None and cheap.number < SMALL_PART
    if cheap is not None and small:
        most = 1 / (1 - cheap.number)
        reasons.append(
            Reason.of(
                f"the fused operation was {cheap} of the unfused time: {most:.2f}x is the most there is to win", cheap
            )
        )
    return Finding(
        headline="the fusion does not pay: its matrix product is slower than the library's",
        confidence=0.88 if small else 0.8,
        because=tuple(reasons),
        fixes=(
            Fix("return to the library's product and fuse around it (torch.compile, cuBLASLt epilogues)",
                worth=f"{1 / wide.number:.2f}x over the best custom configuration", cost="none", risk="none"),
            Fix("fuse the cheap operation where its output feeds several products, such as Q, K and V",
                worth="the saved round trip, once for three products", cost="a kernel", risk="the same trap"),
            Fix("CUTLASS prologue or epilogue fusion, if the round trip matters",
                worth="the library's rate plus the saved traffic", cost="C++ templates", risk="build and maintenance"),
        ),
        avoid="Do not tune the same kernel further: the search was wide and it still loses.",
        next=(NCU, TORCH_TRACE),
    )  # fmt: skip


def _worth(evidence: Evidence, library: float) -> str:
    limit = evidence.get(a.FUSION_LIMIT)
    return "" if limit is None else f"at most {show(limit.number, Unit.SECOND)} of {show(library, Unit.SECOND)}"


def _summary(evidence: Evidence, library: float) -> str:
    limit = evidence.get(a.FUSION_LIMIT)
    if limit is None:
        return ""
    share = limit.number / library
    return (f"Fusing can save {show(limit.number, Unit.SECOND)} at best ({share:.0%}, bytes over bandwidth {limit.note}); "
            "the product inside loses more.")  # fmt: skip


def _because(evidence: Evidence, best: float, library: float, wide: bool) -> tuple[Reason, ...]:
    facts = [f for q in (a.BEST, a.LIBRARY, a.TIMED) if (f := evidence.get(q)) is not None]
    found = [Reason.of(f"the best configuration ({evidence.text(a.BEST_CONFIG)}) is {best / library:.2f}x the library path",
                       *facts)]  # fmt: skip
    axis, effect = evidence.get(a.AXIS), evidence.value(a.AXIS_EFFECT)
    if axis is not None and effect == effect:
        found.append(Reason.of(f"{axis} matters most: its worst value is {effect:.2f}x the best time", axis))
    ceiling = evidence.get(a.PEAK_TIME)
    if ceiling is not None:
        found.append(Reason.of(f"the library path is at {ceiling.number / library:.0%} of the matrix peak, the best fused one at "
                               f"{ceiling.number / best:.0%}", ceiling))  # fmt: skip
    if wide:
        found.append(Reason.of(f"{evidence.value(a.TIMED):.0f} configurations over {evidence.value(a.AXES_VARIED):.0f} axes were timed",
                               *facts))  # fmt: skip
    return tuple(found)
