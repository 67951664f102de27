"""GPU memory has errors that cannot be corrected, or rows that wait to be replaced.

## What it means
ECC found errors in two bits of a word, or so many single ones that the driver replaced a row (row remapping, page
retirement). The replacement takes effect at the next reset; a failed replacement means the spare rows are used up.

## Why it costs
An uncorrectable error kills the program that touched it (Xid 48, 94, 95). A pending remap leaves the bad row in use
until somebody resets the GPU, so the next job on that node dies the same way.

## What else looks so
Corrected errors at a low rate are normal: they cost nothing and say little. An illegal address (Xid 13, 31) is
software. Wrong results without any of these counters are not explained by them.

## Fix
Drain the node and reset the GPU so the remap takes effect; run the vendor's field diagnostic. Return the card when
remapping failed, or when uncorrectable errors come back.

## How the gain is found
Not in seconds: the job dies, or will die. The worth is the restart that is avoided.
"""

from __future__ import annotations

from stallwise.doctor.findings.clue import Clue
from stallwise.doctor.findings.finding import Finding, Fix, Reason
from stallwise.doctor.findings.rule import rule
from stallwise.evidence.capture import AMD_RAS, DMESG, NVIDIA_SMI_Q
from stallwise.evidence.catalog.hardware import (
    GPU_ECC_CORRECTED,
    GPU_ECC_UNCORRECTED,
    GPU_REMAP_FAILED,
    GPU_REMAP_PENDING,
    GPU_REMAPPED_ROWS,
    XID_APPLICATION,
    XID_MEMORY,
    XID_ORDER,
)
from stallwise.evidence.catalog.stated import HOST_MEMORY_ERRORS
from stallwise.evidence.evidence import Evidence
from stallwise.evidence.fact import Fact

MOST_SHOWN = 8  # sentences of evidence
MANY_CORRECTED = 10_000  # in one uptime: far above the handful a healthy card shows
CLUES = (
    Clue(
        (GPU_ECC_UNCORRECTED,),
        lambda e: any(f.number > 0 for f in e.all(GPU_ECC_UNCORRECTED)),
        "strong",
        "uncorrectable memory errors were counted",
        "no uncorrectable memory error was counted",
    ),
    Clue(
        (HOST_MEMORY_ERRORS,),
        lambda e: not any(e.all(q) for q in (XID_MEMORY, GPU_ECC_UNCORRECTED, GPU_REMAP_FAILED, GPU_REMAP_PENDING)),
        "forbids",
        "the errors are of the host's memory",
    ),
)


@rule()
def gpu_memory_errors(evidence: Evidence) -> Finding | None:
    """Codes of the driver, counters of ECC, state of row remapping."""
    failed = [f for f in evidence.all(GPU_REMAP_FAILED) if f.number > 0]
    pending = [f for f in evidence.all(GPU_REMAP_PENDING) if f.number > 0]
    uncorrected = [f for f in evidence.all(GPU_ECC_UNCORRECTED) if f.number > 0]
    codes = evidence.all(XID_MEMORY)
    noisy = [f for f in evidence.all(GPU_ECC_CORRECTED) if f.number >= MANY_CORRECTED]
    because = [Reason.of(str(f.value), f) for f in codes]
    because += [Reason.of(f"{_name(f)}: a row could not be remapped", f) for f in failed]
    because += [Reason.of(f"{_name(f)}: a row remap waits for a reset", f) for f in pending]
    because += [Reason.of(f"{_name(f)}: {f} errors that could not be corrected", f) for f in uncorrected]
    because += [Reason.of(f"{_name(f)}: {f} corrected errors", f) for f in noisy]
    if not because:
        return None
    confidence = 0.97 if codes or failed else 0.9 if pending or uncorrected else 0.55
    first = next(iter([*failed, *codes, *pending, *uncorrected, *noisy]))
    remapped = [f for f in evidence.all(GPU_REMAPPED_ROWS) if f.number > 0]
    because += [Reason.of(f"{_name(f)}: {f} rows remapped so far", f) for f in remapped]
    because += [Reason.of(str(f.value), f) for f in evidence.all(XID_ORDER)]
    because += [Reason.of(str(f.value), f) for f in evidence.all(XID_APPLICATION)[:1]]
    amd = any("amdgpu" in f"{f.value} {f.note}" for f in codes)
    reset = "amd-smi reset -G" if amd else "nvidia-smi -r"
    return Finding(
        headline=_headline(failed, pending, codes, uncorrected),
        confidence=confidence,
        because=tuple(because[:MOST_SHOWN]),
        scope=first.scope,
        fixes=(
            Fix(
                f"Drain the node, reset the GPU ({reset}) so that pending remaps take effect, run the field diagnostic.",
                worth="the next job does not die there",
                cost="minutes of that node",
            ),
            Fix("Return the card if remapping failed or the errors come back.", cost="a replacement"),
        ),
        avoid="Do not look for a bug in the program first: the driver says the memory is at fault.",
        next=(AMD_RAS, DMESG) if amd else (NVIDIA_SMI_Q, DMESG),
        explains=("rank-died-first", "application-fault"),
        blocking=bool(codes or failed or uncorrected),
    )


def _headline(failed: list[Fact], pending: list[Fact], codes: list[Fact], uncorrected: list[Fact]) -> str:
    if failed:
        return f"{_name(failed[0])} has memory rows that cannot be replaced: the card is worn out"
    if codes:
        return f"GPU memory failed: {_short(str(codes[0].value))}"
    if pending:
        return f"{_name(pending[0])} waits for a reset to replace a bad memory row"
    if uncorrected:
        return f"{_name(uncorrected[0])} has memory errors that cannot be corrected"
    return "GPU memory corrects errors at an unusual rate"


def _name(fact: Fact) -> str:
    if fact.scope.gpu is None:
        return "a GPU"
    node = f" of {fact.scope.node}" if fact.scope.node else ""
    return f"GPU {fact.scope.gpu}{node}"


def _short(text: str) -> str:
    """A code without its meaning; of AMD's driver the message itself."""
    return text[:70] if "amdgpu" in text else text.partition(": ")[0]
