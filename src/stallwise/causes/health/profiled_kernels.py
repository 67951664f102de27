"""Profiled kernels are well when those that make up the time run at the peak of the unit that their work needs, without a tail.

Refuted by: a matrix product whose tensor pipe is idle beside a busy FMA pipe (no ceiling of a product in 16 bits), bytes that
nobody asked for behind a busy DRAM (scattered access, spills), lanes that are switched off in a busy pipe, double precision by
accident, and anybody who does the same faster (a library beside it, a variant of the sweep, another machine).
"""

from __future__ import annotations

from stallwise.causes.health._second_number import highest, lowest, of_now
from stallwise.doctor.findings.counters import AT_CEILING, Counters
from stallwise.doctor.findings.finding import Fix, Reason
from stallwise.doctor.findings.proof import Limit, Proof
from stallwise.doctor.findings.step_facts import percent
from stallwise.evidence.catalog import kernel as k
from stallwise.evidence.catalog import run, stated
from stallwise.evidence.evidence import Evidence

MOST_TIME = 0.90  # of the profiled time must be in such kernels: the rest cannot be worth a headline
SMALL_TAIL = 0.10  # of a kernel's time
SMALL_WASTE = 0.10  # of the sectors: more and the busy memory moves what nobody asked for
WARP = 32.0  # lanes
MOST_LANES = 0.75  # of a warp at work on average: fewer fill the pipe with instructions, not with work
IN_USE = 0.02  # of the tensor pipe: below, nothing of the kernel runs there
FASTER = 1.25  # times: what is less, other sizes and clocks explain
NARROW = ("half", "bf16", "bfloat16", "fp16", "fp8", "e4m3", "e5m2", "int8", "tf32")


def profiled_kernels(evidence: Evidence) -> Proof | None:
    """Time in kernels at the ceiling of their work over all profiled time."""
    times: dict[str, tuple[float, str, float]] = {}
    for scope in evidence.scopes("kernel"):
        if scope.kernel is None or scope.kernel in times:
            continue
        view = evidence.within(scope)
        fact = view.get(k.TOTAL_TIME) or view.get(k.TIME)
        if fact is None or not (view.all(k.SM_SHARE) or view.all(k.DRAM_SHARE)):
            continue
        what, share = _ceiling(Counters(view))
        times[scope.kernel] = (fact.number, what, share)
    whole = sum(t for t, _, _ in times.values())
    if not whole > 0:
        return None
    near = sum(t for t, what, _ in times.values() if what)
    name, (seconds, what, share) = max(times.items(), key=lambda item: item[1][0])
    lacks = _faster_beside_it(evidence)
    if not lacks and near < MOST_TIME * whole:
        lacks = f"only {percent(near / whole)} of the profiled time is at the ceiling of its work."
    sources = tuple(f.source for f in evidence.all(k.TIME)[:1])
    short = name.split("(", 1)[0][:60]
    return Proof(
        of="profiled kernels",
        says=f"{percent(near / whole)} of the profiled time is in kernels at the ceiling of their work",
        because=(Reason(f"{short}: {what or 'no unit'} at {percent(share)} of its peak, {percent(seconds / whole)} of the time", sources),),
        confidence=0.9,
        limit=_limit(what, share) if what and not lacks else None,
        lacks=lacks,
        objects=bool(lacks),
    )  # fmt: skip


def _ceiling(c: Counters) -> tuple[str, float]:
    """The unit that this kernel's work needs and keeps full; nothing where none is, where a part-wave idles the card, or where
    what fills the unit is waste."""
    gemm = _is_gemm(c)
    math = c.tensor if gemm else max(c.math, c.get(k.SM_SHARE))
    units = {"DRAM": c.dram, "tensor pipe" if gemm else "math pipe": math}
    name, share = max(units.items(), key=lambda item: item[1])
    wasted = _wasted_bytes(c) if name == "DRAM" else _wasted_lanes(c)
    return (name, share) if share >= AT_CEILING and c.get(k.TAIL_SHARE) <= SMALL_TAIL and not wasted else ("", share)


def _is_gemm(c: Counters) -> bool:
    """A matrix product or attention in a type that the tensor pipe takes: for it no other pipe is a ceiling."""
    types = c.word(k.ARGUMENT_TYPES).lower()
    by_kind = c.word(k.KIND) == "matrix product"
    narrow = any(word in types or word in c.word(k.NAMED_PRECISION).lower() for word in NARROW)
    uses_tensor_cores = (
        c.knows(k.TENSOR_SHARE) and c.get(k.TENSOR_SHARE) > IN_USE
    )  # it has products on the pipe, between other work
    return (by_kind and (narrow or not types)) or uses_tensor_cores


def _wasted_bytes(c: Counters) -> bool:
    return max(c.get(k.EXCESS_SECTORS), c.get(k.LOCAL_TRAFFIC)) > SMALL_WASTE


def _wasted_lanes(c: Counters) -> bool:
    lanes = c.get(k.ACTIVE_THREADS, WARP)
    by_accident = c.get(k.FP64_SHARE) >= AT_CEILING and "double" not in c.word(k.ARGUMENT_TYPES).lower()
    return lanes < MOST_LANES * WARP or by_accident


def _faster_beside_it(evidence: Evidence) -> str:
    """Somebody does the same faster, so that no ceiling of the card is what holds it."""
    library, mine = highest(of_now(evidence, stated.LIBRARY_FLOP_RATE)), lowest(of_now(evidence, run.FLOP_RATE))
    if library is not None and mine is not None and library.number > FASTER * mine.number > 0:
        return f"a library does the same at {library}, {library.number / mine.number:.1f}x as fast."
    slower = lowest(of_now(evidence, stated.CUSTOM_SPEEDUP))
    if slower is not None and 0 < slower.number < 1 / FASTER:
        return f"it runs at {slower} of what its reference does."
    if evidence.all(stated.BETTER_ELSEWHERE):
        return "the same is told to run better elsewhere."
    return ""


def _limit(what: str, share: float) -> Limit:
    if what == "DRAM":
        text = f"memory bandwidth, {percent(share)} of its peak: to go faster, move fewer bytes"
        return Limit("memory bandwidth", share, text, (Fix("fuse with its neighbours, or use a narrower type"),))
    text = f"arithmetic, {percent(share)} of the pipe's peak: to go faster, compute less or in a narrower type"
    return Limit("arithmetic", share, text, (Fix("less work, a narrower type, or tensor cores where it is a product"),))
