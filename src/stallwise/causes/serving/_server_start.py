"""A server that takes long to start, or compiles while requests wait: the serving side of a cold start."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import replace

from stallwise.doctor.findings.finding import Finding, Fix, Reason
from stallwise.evidence.capture import SERVE_LOG
from stallwise.evidence.catalog import serving
from stallwise.evidence.evidence import Evidence
from stallwise.evidence.fact import Fact

AVOIDABLE_S = 90.0  # compile, JIT and warm-up of a healthy start take up to a minute
MANY_SAMPLES = 20  # of ten seconds each: enough that a compile's queue would have been seen
AVOIDABLE_SHARE = 0.3  # of the start
_COMPILE = re.compile(r"compil|dynamo|inductor|triton", re.IGNORECASE)
_WARM = re.compile(r"warm|jit|autotun|tuning|capture|capturing", re.IGNORECASE)
_WHOLE = re.compile(r"init engine|engine init|startup|start-up", re.IGNORECASE)


def slow_server_start(evidence: Evidence) -> Finding | None:
    """The worst start among the logs, or a kernel compiled under load."""
    late = evidence.get(serving.LATE_COMPILE)
    by_file: dict[str, list[Fact]] = defaultdict(list)
    for fact in evidence.all(serving.START_PHASE):
        by_file[fact.source.file].append(fact)
    worst = max(((_avoidable(facts), facts) for facts in by_file.values()), key=lambda x: x[0], default=(0.0, []))
    if late is not None and not _nobody_waited(evidence):
        return _late(late)
    avoidable, facts = worst
    ready = max((f.number for f in evidence.all(serving.READY_TIME)), default=float("nan"))
    whole = max([f.number for f in facts if _WHOLE.search(f.scope.layer or "")] + [avoidable], default=0.0)
    whole = max(whole, ready) if ready == ready else whole
    if avoidable < AVOIDABLE_S or avoidable < AVOIDABLE_SHARE * whole:
        return None
    return replace(_start(facts, avoidable, whole), optional=_nobody_waited(evidence))  # it served well afterwards


def _parts(facts: list[Fact]) -> list[Fact]:
    """Phases that a cache would save, longest first: of workers that go through the same one at once the slowest counts."""
    slowest: dict[str, Fact] = {}
    for fact in sorted(facts, key=lambda f: f.number):
        slowest[fact.scope.layer or ""] = fact
    inner = [
        f
        for f in slowest.values()
        if not _WHOLE.search(f.scope.layer or "")
        and (_COMPILE.search(f.scope.layer or "") or _WARM.search(f.scope.layer or ""))
    ]
    return sorted(inner, key=lambda f: -f.number)


def _avoidable(facts: list[Fact]) -> float:
    parts = _parts(facts)
    compiling = max(
        (f.number for f in parts if _COMPILE.search(f.scope.layer or "")), default=0.0
    )  # nested: the longest holds the rest
    return compiling + sum(f.number for f in parts if not _COMPILE.search(f.scope.layer or ""))


def _nobody_waited(evidence: Evidence) -> bool:
    """Many samples of the engine, and a queue in none of them."""
    return evidence.value(serving.SAMPLES, 0.0) >= MANY_SAMPLES and evidence.value(serving.WAITING_SHARE, 1.0) == 0


def _late(late: Fact) -> Finding:
    return Finding(
        headline=f"A kernel ({late}) was compiled while requests waited.",
        confidence=0.9,
        because=(Reason.of(f"the engine compiled {late} during inference, not in its warm-up", late),),
        fixes=(
            Fix("Extend warm-up to the shapes of real traffic (batch sizes, prompt lengths, LoRA, penalties)", worth="the spike of each first shape", cost="a longer start"),
            Fix("Keep the compile cache (Triton, inductor, FlashInfer) on a volume that survives restarts", worth="the same, once per machine"),
        ),
        avoid="Looking for a slow GPU: the spike happens once for each new shape.",
        next=(SERVE_LOG,),
    )  # fmt: skip


def _start(facts: list[Fact], avoidable: float, whole: float) -> Finding:
    first = _parts(facts)[0]
    return Finding(
        headline=f"Of a start of {whole:.0f} s, {avoidable:.0f} s compile and warm up what a cache could keep.",
        confidence=0.88,
        because=tuple(Reason.of(f"{f.scope.layer}: {f.number:.0f} s", f) for f in _parts(facts)[:4]),
        fixes=(
            Fix(f"Keep the caches of '{first.scope.layer}' between starts (a volume, or baked into the image)", worth=f"up to {avoidable:.0f} s a start", cost="some GB of disk"),
            Fix("Fewer shapes to compile and capture: a smaller maximal batch, fewer graph sizes, a narrower compile range", worth="in proportion"),
            Fix("Start new replicas before the old ones go; keep one warm", worth="users never wait for it", cost="an idle GPU"),
        ),
        not_here=(Reason("slow first requests after such a start: the same compiles, once"),),
        avoid="Faster disks: loading the weights is the smaller part.",
        next=(SERVE_LOG,),
    )  # fmt: skip
