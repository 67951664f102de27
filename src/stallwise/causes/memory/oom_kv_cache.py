"""The serving engine has no room for the KV cache that the requested length needs.

## What it means
After weights and the profiled peak, what is left of the allowed part of the GPU is the KV cache. It is smaller than one
request of the maximum length, or nothing at all.

## Why it costs
The server does not start, or serves one request at a time.

## What else looks so
A failure while capturing CUDA graphs comes after the cache was placed. Another process on the GPU lowers what is left.

## Fix
Allow more of the GPU (`gpu_memory_utilization`, `--mem-fraction-static`); lower the maximum length; quantise weights or the
cache; more GPUs with tensor parallelism.

## How the gain is found
Bytes a token x maximum length, against the allowed part minus weights and peak.
"""

from __future__ import annotations

from stallwise.doctor.findings.clue import Clue
from stallwise.doctor.findings.failure import Failure
from stallwise.doctor.findings.finding import Finding, Fix
from stallwise.doctor.findings.rule import rule
from stallwise.evidence.capture import SERVE_LOG
from stallwise.evidence.catalog import memory as m
from stallwise.evidence.evidence import Evidence

LOW_FRACTION = 0.5  # engines default to 0.88 to 0.9 of the GPU

CLUES = (Clue((m.KV_NO_ROOM,), lambda e: bool(e.value(m.KV_NO_ROOM)), "decisive", "no room is left for cache blocks"),)


@rule(m.KV_NO_ROOM)
def oom_kv_cache(evidence: Evidence) -> Finding | None:
    """Judges the start-up of an engine."""
    f = Failure(evidence)
    fraction, length = f.get(m.MEMORY_FRACTION), f.get(m.MAX_LENGTH)
    because = [f.reason("the engine says that no memory is left for its cache blocks", m.KV_NO_ROOM)]
    fixes = [
        Fix("lower the maximum length (max_model_len)", worth="in proportion", cost="shorter requests"),
        Fix("quantise weights or the KV cache, or more GPUs (tensor parallel)", cost="accuracy or hardware"),
    ]
    if f.knows(m.KV_NEEDED):
        because.append(
            f.reason(f"one request needs {f.show(m.KV_NEEDED)}, {f.show(m.KV_AVAILABLE)} is left", m.KV_NEEDED)
        )
    if length:
        because.append(f.reason(f"the longest request is {length:,.0f} tokens", m.MAX_LENGTH))
    if fraction:
        because.append(f.reason(f"the engine may use {fraction:.0%} of the GPU", m.MEMORY_FRACTION))
    raise_it = Fix(
        "raise gpu_memory_utilization (or --mem-fraction-static)", worth="all of it goes to the cache", cost="free"
    )
    fixes.insert(0 if fraction < 0.85 else len(fixes), raise_it)
    return Finding(
        headline="no room for the KV cache" + (f": the engine may use only {fraction:.0%} of the GPU" if 0 < fraction < LOW_FRACTION else ""),
        confidence=0.95,
        because=tuple(because),
        fixes=tuple(fixes),
        avoid="Do not look for a leak: the cache is what is left by design.",
        next=(SERVE_LOG,),
        blocking=True,
    )  # fmt: skip
