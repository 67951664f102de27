"""Tensor cores are used but wait: tiles arrive later than they can be multiplied.

## What it means
The kernel does issue tensor instructions, yet the tensor pipe is busy only a part of the time. Tiles are loaded in line
with the arithmetic: no staging in shared memory, no asynchronous copy ahead of use, too shallow a pipeline, or layouts
that make shared memory the bottleneck.

## Why it costs
The pipe that decides the time idles. A library product of the same shape keeps it 75 to 95% busy.

## What else looks so
A product with little reuse (a thin batch, decode) sits at the DRAM roof and is limited by its bytes. Low occupancy is
normal for good tensor kernels: their tiles fill registers and shared memory on purpose.

## Fix
Take the library kernel if nothing is fused that matters. Otherwise stage tiles through shared memory with `cp.async` or
TMA three to five deep, use swizzled layouts, give each warp a larger tile, and let one warp group load while another
multiplies; in Triton raise `num_stages` and try larger tiles by measurement.

## How the gain is found
The tensor pipe's share against the 60 to 85% that tuned kernels of this kind reach.
"""

from __future__ import annotations

from stallwise.causes.kernel._gemm_numbers import gemm_numbers
from stallwise.doctor.findings.clue import Clue, above, over, yes
from stallwise.doctor.findings.counters import AT_CEILING, NEAR_CEILING, Counters
from stallwise.doctor.findings.finding import Finding, Fix, Gain, Reason
from stallwise.doctor.findings.rule import rule
from stallwise.evidence.capture import NCU, Capture
from stallwise.evidence.catalog import expected, kernel, run, stated
from stallwise.evidence.catalog import kernel as k
from stallwise.evidence.evidence import Evidence

IN_USE = 0.02  # of the tensor pipe: above, tensor instructions do real work
STARVED = 0.60  # fused attention at 60 to 75% is as good as it gets; under it time is lost
CLEARLY = 0.45  # above, long epilogues or odd shapes may be the reason
TUNED_LOW, TUNED_HIGH = 0.60, 0.85
FEW_WAVES = 0.5  # below, most places for blocks are empty and no roof can be near
WASTE = 0.3  # of the global sectors: fewer cost a product's tiles no time
# How tiles come is why the pipe waits: with the pipe fed they may stay as they are, so the pipe is the finding, they its reason.
FEEDING = ("uncoalesced-access", "shared-bank-conflicts")
BEST_DRAM = 0.93  # of DRAM's peak: the bytes set a floor that no feeding of tiles can pass


@rule(k.CONTRACTION, per="kernel")
def tensor_cores_starved(evidence: Evidence) -> Finding | None:
    """Judges one kernel."""
    c = Counters(evidence)
    hidden = not c.tensor_known and c.word(k.KIND) == "matrix product" and c.knows(k.SM_SHARE)
    if hidden and c.get(k.SM_SHARE) < 0.5 and c.dram < 0.5 and c.get(k.WAVES, 9.0) >= FEW_WAVES:
        return _unseen(c)
    if not c.knows(k.TENSOR_SHARE) or not IN_USE <= c.tensor < STARVED or c.dram >= NEAR_CEILING:
        return None
    # Little tensor work beside much other work is not a product: a few moves through the pipe, say.
    other_work = c.math >= AT_CEILING and c.word(k.KIND) != "matrix product"
    if other_work or (c.tensor < 0.1 and c.get(k.CONTRACTION) < 1.0):
        return None
    if c.get(k.WAVES, 9.0) < 1 and c.get(k.GRID_BLOCKS, 1e9) < 0.5 * c.get(k.SM_COUNT, 1.0):
        confidence = 0.6  # most SMs have no block at all: the grid explains the low pipe first
    else:
        confidence = 0.92 if c.tensor < CLEARLY else 0.7
    return Finding(
        headline=f"tensor cores wait for tiles: the pipe is {c.tensor:.0%} busy",
        confidence=confidence,
        because=(*_because(c), *gemm_numbers(evidence)),
        gain=c.gain(*_to_win(c), "the pipe's share against 60-85% in tuned kernels, not under the bytes' own time"),
        fixes=_fixes(c),
        not_here=_not_here(c),
        avoid="Do not chase occupancy: good tensor kernels run at 12 to 25% of it.",
        next=(NCU,),
        summary=f"{c.stall[:1].upper()}{c.stall[1:]}." if c.stall else "",
        explains=FEEDING,
    )  # fmt: skip


def _to_win(c: Counters) -> tuple[float, float]:
    floor = 1 - c.dram / BEST_DRAM
    return min(1 - c.tensor / TUNED_LOW, floor), min(1 - c.tensor / TUNED_HIGH, floor)


def _fixes(c: Counters) -> tuple[Fix, ...]:
    """The pipe first, then what feeds it; each is worth a part of the distance to a tuned kernel."""
    first, second = _to_win(c)
    fixes = [
        Fix("the library product, or the native tensor path (wgmma on Hopper, mma.sync before it; CUTLASS, tl.dot)",
            c.gain(first, second, "a tuned kernel's pipe share"), cost="a call, or a rewrite of the main loop",
            risk="a fusion is lost"),
        Fix("stage tiles by asynchronous copy (cp.async, TMA), three to five deep",
            c.gain(0.3 * first, 0.7 * second, "the part of the wait that is loads"), cost="shared memory for each stage",
            risk="barrier code"),
    ]  # fmt: skip
    if c.get(k.REGISTERS) >= 128:
        fixes.append(Fix(f"fewer live registers than {c.get(k.REGISTERS):.0f} a thread, if it spills or cannot hold two blocks",
                         cost="a smaller tile has less reuse", risk="lower intensity"))  # fmt: skip
    share = c.get(k.CONFLICT_SHARE)
    if share >= 0.2 or c.get(k.STALL_MIO_THROTTLE) + c.get(k.STALL_SHORT_SCOREBOARD) >= 0.15:
        fixes.append(Fix("swizzled shared-memory layout (ldmatrix)", worth="removes the conflicts in front of the pipe",
                         cost="index arithmetic"))  # fmt: skip
    fixes.append(Fix("search tiles, stages and warps by measurement", cost="minutes of autotuning"))
    return tuple(fixes)


def _unseen(c: Counters) -> Finding:
    return Finding(
        headline="a matrix product far from every roof: tiles arrive too slowly, or tensor cores are not used",
        confidence=0.55,
        because=(c.reason(f"SM throughput {c.get(k.SM_SHARE):.0%} and DRAM {c.dram:.0%}", k.SM_SHARE, k.DRAM_SHARE),),
        gain=c.gain(0.3, 0.7, "a tuned product reaches 60-85% of its pipe"),
        fixes=(Fix("compare with the library product of the same shape", cost="a minute"),),
        next=(NCU,),
    )


def _because(c: Counters) -> tuple[Reason, ...]:
    found = [c.reason(f"tensor pipe {c.tensor:.0%}, DRAM {c.dram:.0%}: no roof is near", k.TENSOR_SHARE, k.DRAM_SHARE)]
    if c.stall:
        found.append(c.reason(c.stall, k.TOP_STALL))
    if c.get(k.CONFLICT_SHARE) >= 0.2:
        found.append(c.reason(f"{c.get(k.CONFLICT_SHARE):.0%} of the shared-memory wavefronts are bank conflicts",
                              k.CONFLICT_SHARE))  # fmt: skip
    if c.get(k.EXCESS_SECTORS) >= WASTE:
        found.append(c.reason(f"{c.get(k.EXCESS_SECTORS):.0%} of the global sectors that bring its tiles are waste",
                              k.EXCESS_SECTORS))  # fmt: skip
    if c.get(k.L1_SHARE) >= 0.6:
        found.append(c.reason(f"L1 and shared memory run at {c.get(k.L1_SHARE):.0%}", k.L1_SHARE))
    return tuple(found)


def _not_here(c: Counters) -> tuple[Reason, ...]:
    if not c.knows(k.ACHIEVED_OCCUPANCY):
        return ()
    text = f"occupancy {c.get(k.ACHIEVED_OCCUPANCY):.0%}: normal where tiles live in registers"
    return (c.reason(text, k.ACHIEVED_OCCUPANCY),)


# Tensor cores that run but starve, while only suspected: base rates, clues, and what each fix is worth here.
SASS = Capture(
    "the kernel's SASS", "cuobjdump -sass kernel.cubin | grep -cE 'HGMMA|HMMA|QGMMA|LDGSTS|UTMALDG'", "seconds"
)


def _waits_for_memory(evidence: Evidence) -> bool | None:
    stalls = evidence.value(kernel.STALL_LONG_SCOREBOARD, 0.0) + evidence.value(kernel.STALL_MIO_THROTTLE, 0.0)
    return stalls > 0.3


CLUES = (
    Clue((k.TENSOR_SHARE,), lambda e: IN_USE <= e.value(k.TENSOR_SHARE) < STARVED, "fair, needed",
         "the tensor pipe works, but far below its peak"),
    over(
        run.FLOP_RATE, expected.VECTOR_CEILING, 1.0, "fair",
        "the rate is above what CUDA cores alone can do: tensor instructions run", "CUDA cores alone could do this rate",
    ),
    Clue((kernel.STALL_LONG_SCOREBOARD,), _waits_for_memory, "fair",
         "warps wait for loads and for the shared-memory queue", "warps do not wait for memory"),
    yes(stated.ASYNC_COPY, "against", "tiles already come by asynchronous copy", "no asynchronous copy feeds the tiles"),
    yes(stated.WGMMA, "required", "the SASS holds tensor-core instructions", "the SASS holds no tensor-core instruction"),
    above(kernel.DRAM_SHARE, 0.8, "against", "DRAM is at its roof: the kernel cannot be fed faster", "DRAM is not the limit"),
)  # fmt: skip


def advise(evidence: Evidence) -> Finding:
    """Tensor path first, then staging, then registers; occupancy is a result, not a lever."""
    rate, library, ceiling, peak = (
        evidence.value(q)
        for q in (run.FLOP_RATE, stated.LIBRARY_FLOP_RATE, expected.VECTOR_CEILING, expected.MATRIX_PEAK)
    )
    own_s, library_s = evidence.value(expected.GEMM_TIME), evidence.value(expected.GEMM_TIME_LIBRARY)
    target = library if library == library else 0.65 * peak
    gap = (
        f"{rate / 1e12:.0f} -> up to {target / 1e12:.0f} TFLOP/s ({target / rate:.1f}x)"
        if rate > 0 and target == target
        else ""
    )
    whole = (
        Gain(0.6 * (own_s - library_s), own_s - library_s, "the library's time on the same shape")
        if own_s > library_s
        else None
    )
    staging = (
        Gain(0.25 * (own_s - library_s), 0.6 * (own_s - library_s), "the share of cycles in load stalls")
        if own_s > library_s
        else None
    )
    registers, limit = evidence.get(kernel.REGISTERS), evidence.get(expected.WARP_LIMIT)
    occupancy = evidence.get(kernel.ACHIEVED_OCCUPANCY)
    because = []
    if rate == rate and ceiling == ceiling and peak == peak:
        because.append(Reason.of(
            f"{rate / 1e12:.0f} TFLOP/s against a CUDA-core ceiling of {ceiling / 1e12:.0f} and a tensor peak of {peak / 1e12:.0f}",
            *evidence.all(run.FLOP_RATE)[:1],
        ))  # fmt: skip
    registers_text = (
        f"{registers} registers a thread allow {limit} of the warps"
        if registers and limit
        else "registers cap the resident warps"
    )
    return Finding(
        headline="Tensor cores run but starve: the kernel cannot feed them.",
        confidence=0.0,
        because=(*because, *gemm_numbers(evidence)),
        summary=f"{gap}. The stalls say what keeps the tensor pipe waiting." if gap else "",
        fixes=(
            Fix("Move the inner product to the native tensor path: wgmma on Hopper (CUTLASS, CuTe), mma.sync before it", whole,
                worth=gap or "several times, where the pipe is a tenth busy", cost="a rewrite of the main loop", risk="layouts and tile shapes become fixed"),
            Fix("Stage tiles by asynchronous copy (TMA, cp.async) in a pipeline of 3 to 4 stages", staging,
                worth="hides the load stalls", cost="shared memory for every stage", risk="deadlocks in barrier code"),
            Fix("Cut register pressure: smaller tile a thread or fewer live accumulators", worth=registers_text,
                cost="less reuse from registers", risk="too small a tile lowers the intensity"),
            Fix("Swizzle the shared-memory layout so that tensor loads meet no bank conflicts",
                worth="removes the queue stalls in front of the tensor pipe", cost="index arithmetic", risk="none known"),
        ),
        not_here=(Reason.of(f"occupancy of {occupancy}: a GEMM that feeds its tensor cores is fast at this occupancy", occupancy),) if occupancy else (),
        avoid="Raising occupancy first: it is a symptom here. More resident warps do not make a kernel issue tensor instructions.",
        next=(SASS, NCU),
    )  # fmt: skip
