"""The CPU side of the engine (tokenising, scheduling, sampling) limits, and the GPU waits for it.

## What it means
Each iteration is prepared and finished on the host: tokenise, schedule, build inputs, sample, detokenise, stream. In most
engines one Python process, often one thread, does all of it. When that core or the container's quota is used up, the GPU
has gaps between iterations.

## Why it costs
Every iteration is lengthened by the host's part that cannot hide behind the GPU, and more load no longer raises throughput.

## What else looks so
A GPU at the memory roof also stops gaining with load, but it is busy. A client that sends one request at a time leaves the
GPU idle without any busy core.

## Fix
More CPU for the container; more API server processes; fewer per-token extras on the host (penalties, logprobs, guided
decoding); a newer engine with asynchronous scheduling; several replicas per machine.

## How the gain is found
GPU idle time at the plateau: with the host out of the way throughput can rise until the GPU is busy.
"""

from __future__ import annotations

from stallwise.causes.serving._each_run import facts
from stallwise.doctor.findings.clue import above
from stallwise.doctor.findings.finding import Finding, Fix, Reason
from stallwise.doctor.findings.rule import rule
from stallwise.evidence.capture import NVIDIA_SMI, PY_SPY
from stallwise.evidence.catalog import hardware, run, serving
from stallwise.evidence.evidence import Evidence
from stallwise.evidence.fact import Fact
from stallwise.evidence.ledger import Category

CLUES = (above(run.HOST_HOT_SHARE, 0.3, "fair when seen", "one function takes much of the host's own time"),)
QUOTA = 0.93  # of the limit: throttling by the kernel's quota begins before the mean reaches it
ONE_CORE = (0.9, 1.25)  # a process bound by one thread
MOSTLY_IDLE = 0.5  # of the machine, so that the one core is not just part of a busy host
GPU_IDLE = 0.8  # utilisation below which the GPU is not the limit
HALF = 0.5  # of an iteration: the host takes longer than the GPU
SLOWER = 2.5  # decode iterations over what memory and arithmetic allow


@rule()
def cpu_bound_engine(evidence: Evidence) -> Finding | None:
    """A core or a quota used up beside an idle GPU; a host's part of each iteration that is longer than the GPU's."""
    if not any(
        evidence.all(q) for q in (serving.ENGINE, serving.CPU_USED, serving.DEVICE_SHARE, serving.SAMPLING_TIME)
    ):
        return None
    used, limit = _quota(evidence)
    cores, idle = evidence.value(run.HOST_BUSY_CORES), evidence.value(run.HOST_IDLE_SHARE)
    busy = _gpu_busy(evidence)
    reasons, confidence = [], 0.0
    if used is not None and used.number >= QUOTA * limit:
        reasons.append(
            Reason.of(
                f"{used.number:.1f} of {limit:.0f} allowed cores are in use", used, *facts(evidence, serving.CPU_LIMIT)
            )
        )
        confidence = 0.7
    if ONE_CORE[0] <= cores <= ONE_CORE[1] and idle >= MOSTLY_IDLE:
        reasons.append(Reason.of(f"one process keeps {cores:.0%} of one core busy while the machine is {idle:.0%} idle",
                                 *facts(evidence, run.HOST_BUSY_CORES, run.HOST_IDLE_SHARE)))  # fmt: skip
        confidence = max(confidence, 0.6)
    sampling = next((f for f in evidence.all(serving.SAMPLING_TIME) if f.scope.run != "before"), None)
    step = next((f for f in evidence.all(run.STEP_TIME) if sampling and f.source == sampling.source), None)
    if sampling and step and step.number > 0 and sampling.number >= HALF * step.number:
        share = sampling.number / step.number
        reasons.append(
            Reason.of(f"sampling on the CPU takes {sampling} of an iteration of {step}: {share:.0%}", sampling, step)
        )
        confidence = 0.85
    device = evidence.value(serving.DEVICE_SHARE)
    if device < GPU_IDLE:
        reasons.append(
            Reason.of(
                f"the GPU works in {device:.0%} of an iteration, the host has the rest",
                *facts(evidence, serving.DEVICE_SHARE),
            )
        )
        confidence = max(confidence, 0.85 if device < HALF else 0.6)
    seen, expected = evidence.value(serving.DECODE_SEEN), evidence.value(serving.DECODE_EXPECTED)
    slow = seen > SLOWER * expected
    if not confidence or (busy == busy and busy >= GPU_IDLE):
        return None
    plateau = evidence.get(serving.PLATEAU_RATE)
    if plateau:
        reasons.append(Reason.of(f"more load no longer raises {plateau}", plateau))
    if busy == busy:
        reasons.append(
            Reason.of(
                f"the GPU is only {busy:.0%} busy", *facts(evidence, serving.PLATEAU_GPU_BUSY, hardware.GPU_UTILISATION)
            )
        )
    if slow:
        reasons.append(
            Reason.of(
                f"iterations take {seen * 1e3:.0f} ms where memory allows {expected * 1e3:.0f} ms",
                *facts(evidence, serving.DECODE_SEEN),
            )
        )
    confidence = min(0.95, confidence + 0.15 * bool(plateau) + 0.15 * (busy == busy) + 0.1 * slow)
    return Finding(
        headline="The engine's CPU side is the limit; the GPU waits for it.",
        confidence=confidence,
        because=tuple(reasons),
        category=Category.HOST_WAIT,
        summary="One Python process prepares and finishes every iteration, and it has no CPU time left.",
        fixes=_fixes(evidence, busy, used is not None and used.number >= QUOTA * limit, limit),
        not_here=(Reason("total CPU use of the machine: one saturated core hides in its mean"),),
        avoid="A faster GPU: it would wait for the same core.",
        next=(PY_SPY, NVIDIA_SMI),
        explains=("queue-saturated",),
    )


def _quota(evidence: Evidence) -> tuple[Fact | None, float]:
    """The cores in use that are nearest to what is allowed, and what is: of one row or moment where both stand there."""
    limits = {f.source: f.number for f in evidence.all(serving.CPU_LIMIT)}
    allowed = evidence.value(serving.CPU_LIMIT)
    pairs = [(f, limit) for f in evidence.all(serving.CPU_USED) if (limit := limits.get(f.source, allowed)) != 0]
    return max(pairs, key=lambda p: p[0].number / p[1], default=(None, allowed))


def _gpu_busy(evidence: Evidence) -> float:
    """At the plateau where known; else the lowest of the GPUs or runs, since the sick one is what is asked about."""
    plateau = evidence.value(serving.PLATEAU_GPU_BUSY)
    if plateau == plateau:
        return plateau
    told = (*evidence.all(hardware.GPU_UTILISATION), *evidence.all(run.GPU_BUSY))
    return min((f.number for f in told), default=float("nan"))


def _fixes(evidence: Evidence, busy: float, quota: bool, limit: float) -> tuple[Fix, ...]:
    seen, expected = evidence.value(serving.DECODE_SEEN), evidence.value(serving.DECODE_EXPECTED)
    idle = 1 / busy if 0 < busy < 1 else 1.0
    reach = max(idle, seen / expected) if seen > expected else idle  # utilisation also counts kernels that wait
    worth = f"up to {reach:.1f}x before the GPU is full" if reach > 1 else "until the GPU is full"
    found = []
    if quota:
        found.append(
            Fix(f"Raise the container's CPU limit from {limit:.0f} cores (or remove it)", worth=worth, cost="a restart")
        )
    found += [
        Fix("More API server processes or tokeniser workers, or a second replica on the same GPU machine", worth=worth, cost="CPU cores"),
        Fix("Take per-token work off the host: penalties, logprobs, guided decoding, long stop lists", worth="its share of each iteration",
            risk="changes what the model answers"),
        Fix("A newer engine version with asynchronous scheduling; CUDA graphs on", worth="hides most host time", cost="an upgrade"),
    ]  # fmt: skip
    return tuple(found)
