"""Counters hidden in the sentences of Nsight Compute's own rules: numbers only, their advice is not ours."""

from __future__ import annotations

import re

from stallwise.evidence.catalog import kernel as k
from stallwise.evidence.quantity import Quantity
from stallwise.readers._cells import NUMBER

_PIPES = {
    "tensor": k.TENSOR_SHARE, "tc": k.TENSOR_SHARE, "hmma": k.TENSOR_SHARE, "imma": k.TENSOR_SHARE,
    "fma": k.FMA_SHARE, "fmaheavy": k.FMA_SHARE, "fp32": k.FMA_SHARE, "fp64": k.FP64_SHARE,
    "alu": k.ALU_SHARE, "xu": k.XU_SHARE, "lsu": k.LSU_SHARE,
}  # fmt: skip
_TOP_PIPE = re.compile(rf"^([\w ()/.+]+?) is the highest-utilized pipeline \(({NUMBER})%\)(.*)", re.S)
_SUB_PIPE = re.compile(r"dominated by its ([\w ()/.+]+?) sub-pipeline")
_EXCESS = re.compile(rf"total of [\d,]+ excessive (sectors|wavefronts) \(({NUMBER})% of the total")
_WAYS = re.compile(rf"(?<![\d.])({NUMBER})\s*-\s*way bank conflict")
_CONFLICTS = re.compile(rf"represent ({NUMBER})% of the overall [\d,]+ wavefronts")
_STALL = re.compile(rf"being stalled (.*?)\. .*represents about ({NUMBER})% of the total", re.S)
_SECTOR = re.compile(rf"for (global|local) (loads|stores).*?only ({NUMBER}) of the 32 bytes", re.S)
_ABOVE = re.compile(
    rf"One or more (SMs|L2 Slices).*?Maximum instance value is ({NUMBER})% above the average",
    re.S,
)
_TAIL = re.compile(rf"partial wave may account for up to ({NUMBER})% of the total")
_RATIO = re.compile(r"ratio of peak float \(fp32\) to double \(fp64\) performance on this device is (\d+):1", re.I)
_ACHIEVED = re.compile(rf"(close to )?(?<![\d.])({NUMBER})% of (?:this device's|its) (fp32|fp64) peak", re.I)
_FUSED = re.compile(r"executes (\d+) fused and (\d+) non-fused FP32")
_LOCAL_ADDS = re.compile(rf"(?<![\d.])({NUMBER}) threads being active per cycle", re.I)
# Phrases of the stall rule in several versions, to the counter's own word.
_STALL_WORDS = (
    ("sibling warps at a cta barrier", "barrier"),
    ("scoreboard dependency on a l1tex", "long_scoreboard"),
    ("scoreboard dependency on a mio", "short_scoreboard"),
    ("scoreboard dependency on an mio", "short_scoreboard"),
    ("mio (memory input/output) instruction queue", "mio_throttle"),
    ("mio instruction queue", "mio_throttle"),
    ("l1 instruction queue for local and global", "lg_throttle"),
    ("local/global", "lg_throttle"),
    ("tex) instruction queue", "tex_throttle"),
    ("texture", "tex_throttle"),
    ("execution pipe to be available", "math_pipe_throttle"),
    ("fixed latency execution dependency", "wait"),
    ("memory barrier", "membar"),
    ("branch target", "branch_resolving"),
    ("instruction cache miss", "no_instruction"),
    ("fetched or having", "no_instruction"),
    ("immediate constant cache", "imc_miss"),
    ("micro scheduler to select", "not_selected"),
    ("memory writes to drain", "drain"),
    ("after exit for all outstanding memory", "drain"),
    ("sleep", "sleeping"),
    ("dispatch", "dispatch_stall"),
    ("tensor core", "gmma"),
)


def facts_in_rule(rule: str, text: str) -> dict[Quantity, float | str]:
    """What the sentence measures."""
    found: dict[Quantity, float | str] = {}
    if match := _TOP_PIPE.match(text):
        found |= _pipe(match[1], float(match[2]) / 100, match[3])
    for what, share in _EXCESS.findall(text):
        found[k.EXCESS_SECTORS if what == "sectors" else k.CONFLICT_SHARE] = float(share) / 100
    if match := _WAYS.search(text):
        found[k.CONFLICT_WAYS] = float(match[1])
        if share := _CONFLICTS.search(text):
            found[k.CONFLICT_SHARE] = float(share[1]) / 100
    if match := _STALL.search(text):
        said = match[1].lower()
        word = next((w for phrase, w in _STALL_WORDS if phrase in said), None)
        if word:
            found[k.STALLS[word]] = float(match[2]) / 100
    if match := _SECTOR.search(text):
        found[k.SECTOR_BYTES_USED if match[1] == "global" else k.LOCAL_SECTOR_BYTES] = float(match[3])
    for unit, above in _ABOVE.findall(text):
        share = float(above) / 100
        found[k.SM_IMBALANCE if unit == "SMs" else k.L2_IMBALANCE] = share / (1 + share)
    if match := _TAIL.search(text):
        found[k.TAIL_SHARE] = float(match[1]) / 100
    if match := _RATIO.search(text):
        found[k.FP32_OVER_FP64] = float(match[1])
    for _, share, kind in _ACHIEVED.findall(text):
        found[k.FP32_PEAK_SHARE if kind.lower() == "fp32" else k.FP64_PEAK_SHARE] = float(share) / 100
    if (match := _FUSED.search(text)) and int(match[1]) + int(match[2]):
        found[k.FUSED_SHARE] = int(match[1]) / (int(match[1]) + int(match[2]))
    if match := _LOCAL_ADDS.search(text):
        found[k.ACTIVE_THREADS] = float(match[1])
    return found


def _pipe(name: str, share: float, rest: str) -> dict[Quantity, float | str]:
    inner = _SUB_PIPE.search(rest)
    real = inner[1] if inner else name  # "Shared" is only the sum of FP64 and tensor
    word = re.sub(r"[^a-z0-9]", " ", real.lower()).split()
    found: dict[Quantity, float | str] = {k.TOP_PIPE: real, k.TOP_PIPE_SHARE: share}
    if word and word[0] in _PIPES:
        found[_PIPES[word[0]]] = share
    return found
