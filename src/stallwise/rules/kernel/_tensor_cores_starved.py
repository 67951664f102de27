"""Tensor cores that run but starve, while only suspected: base rates, clues, and what each fix is worth here."""

from __future__ import annotations

from stallwise.evidence.capture import NCU, Capture
from stallwise.evidence.catalog import expected, kernel, run, stated
from stallwise.evidence.evidence import Evidence
from stallwise.findings.clue import Clue, above, over, yes
from stallwise.findings.finding import Finding, Fix, Gain, Reason

SASS = Capture(
    "the kernel's SASS", "cuobjdump -sass kernel.cubin | grep -cE 'HGMMA|HMMA|QGMMA|LDGSTS|UTMALDG'", "seconds"
)


def _waits_for_memory(evidence: Evidence) -> bool | None:
    stalls = evidence.value(kernel.STALL_LONG_SCOREBOARD, 0.0) + evidence.value(kernel.STALL_MIO_THROTTLE, 0.0)
    return stalls > 0.3


CLUES = (
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
        because=tuple(because),
        summary=f"{gap}. The tensor pipe is the tenfold factor; the stalls say what keeps it waiting." if gap else "",
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
