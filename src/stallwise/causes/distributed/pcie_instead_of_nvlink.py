"""GPUs of one node exchange data over PCIe or host memory instead of NVLink.

## What it means
Either the cards have no NVLink between them, or it is there and not used: peer-to-peer switched off, a container or a
setting in the way. Inside the node all traffic then shares PCIe, or takes two copies through host memory.

## Why it costs
PCIe gives 12 to 50 GB/s per direction where NVLink gives 100 to 900. Gradients, or the activations of tensor
parallelism, become the longest part of a step.

## What else looks so
Small models whose exchange hides behind compute run well on PCIe. Slow loading or a slow rank also make two GPUs no
faster than one.

## Fix
If NVLink exists: remove NCCL_P2P_DISABLE and whatever hides it. If it does not: exchange less often (gradient
accumulation, larger batch per GPU), overlap, keep tensor parallelism off these cards, or choose cards with NVLink.

## How the gain is found
The same training with fewer GPUs, or with peer-to-peer on, against this run.
"""

from __future__ import annotations

from stallwise.doctor.findings.clue import Clue
from stallwise.doctor.findings.finding import Finding, Fix, Reason
from stallwise.doctor.findings.rule import rule
from stallwise.evidence.capture import NCCL_LOG, NCCL_TESTS, TOPOLOGY
from stallwise.evidence.catalog.fabric import (
    GPU_PATHS,
    IN_NODE_VIA,
    NCCL_ENV,
    NCCL_SHARE_IN_NODE,
    NVLINK_PAIRS_SHARE,
    P2P_OFF_SLOWDOWN,
    RUN_SLOWDOWN,
    TP_SIZE,
)
from stallwise.evidence.evidence import Evidence
from stallwise.evidence.fact import Fact

FAR_BELOW = 0.4  # of the low end of what the card's links give: then it is another path
HOST_ONLY = 0.4  # a fact about the machine that costs every collective; whether it hurts this job nothing tells
SLOWER = 1.1  # with more GPUs or without peer-to-peer; less is noise
CLUES = (
    Clue(
        (NVLINK_PAIRS_SHARE,),
        lambda e: e.value(NVLINK_PAIRS_SHARE) == 0,
        "fair",
        "no NVLink joins the GPUs",
        "NVLink joins the GPUs",
    ),
)


@rule()
def pcie_instead_of_nvlink(evidence: Evidence) -> Finding | None:
    """NVLink present and unused; or absent, and more GPUs help little."""
    share, paths = evidence.get(NVLINK_PAIRS_SHARE), evidence.get(GPU_PATHS)
    via = evidence.all(IN_NODE_VIA)
    host = [f for f in via if str(f.value) == "SHM"]
    off = [f for f in evidence.all(NCCL_ENV) if str(f.value) == "NCCL_P2P_DISABLE=1"]
    slower, without = evidence.get(RUN_SLOWDOWN), evidence.get(P2P_OFF_SLOWDOWN)
    has_nvlink = share is not None and share.number > 0
    because = [Reason.of(f"between GPUs: {paths.value}", paths)] if paths else []
    because += (
        [Reason.of(f"data inside the node goes via {' and '.join(str(f.value) for f in via)}", *via)] if via else []
    )
    because += [Reason.of("peer-to-peer is switched off: NCCL_P2P_DISABLE=1", f) for f in off[:1]]
    if slower:
        because.append(
            Reason.of(f"a step takes {slower.number:.2f}x as long from {slower.note}, at the same batch each", slower)
        )
    if without:
        because.append(Reason.of(f"without peer-to-peer the same run takes {without.number:.2f}x as long", without))
    tested = evidence.get(NCCL_SHARE_IN_NODE)
    if tested and tested.number < FAR_BELOW:
        because.append(Reason.of(f"a collective test gives {tested.note}", tested))
    confidence = _confidence(has_nvlink, share is not None, bool(host), bool(off), slower, without, evidence)
    if tested and tested.number < FAR_BELOW and not has_nvlink:
        confidence = max(confidence, 0.75)  # the card has links that the test did not use
    if confidence == 0.0:
        return None
    return Finding(
        headline=_headline(has_nvlink, slower, without),
        confidence=confidence,
        because=tuple(because),
        fixes=_fixes(has_nvlink or bool(off)),
        avoid="Do not add GPUs of the same kind: each adds traffic to the same PCIe.",
        next=(TOPOLOGY, NCCL_TESTS, NCCL_LOG),
        explains=("exposed-communication", "per-gpu-batch-too-small"),
    )


def _confidence(
    has_nvlink: bool, known: bool, host: bool, off: bool, slower: Fact | None, without: Fact | None, evidence: Evidence
) -> float:
    if has_nvlink and (host or off) and (without is not None or slower is not None):
        return 0.9
    if has_nvlink and host and off:
        return 0.75
    if has_nvlink:
        return 0.0
    if slower is not None and slower.number > SLOWER and (known or host):
        return 0.85
    if known and host and evidence.value(TP_SIZE, 1.0) > 1:
        return 0.6
    if host and not known and len(evidence.all(IN_NODE_VIA)) == 1:
        return HOST_ONLY  # all of it goes through host memory: not even PCIe peers reach each other
    return 0.0  # PCIe only is a fact about the machine, not yet a problem


def _headline(has_nvlink: bool, slower: Fact | None, without: Fact | None) -> str:
    if has_nvlink:
        return "NVLink is there and not used: GPUs exchange data through host memory"
    if slower:
        return f"The exchange over PCIe eats the second GPU: steps take {slower.number:.2f}x as long"
    if without:
        return "GPUs exchange data through host memory"
    return "GPUs exchange data over PCIe: no NVLink joins them"


def _fixes(usable: bool) -> tuple[Fix, ...]:
    on = Fix("Remove NCCL_P2P_DISABLE and check that NCCL's lines say P2P.", worth="NVLink speed", cost="a setting")
    less = Fix(
        "Exchange less often: gradient accumulation, or a larger batch per GPU.",
        worth="divides the exchange by the steps between",
        cost="a larger global batch",
        risk="convergence",
    )
    overlap = Fix(
        "DDP rather than DataParallel, gradients as bucket views, bf16 gradients.",
        worth="half the bytes, some of it hidden",
        cost="a setting",
    )
    other = Fix(
        "Cards or servers with NVLink for models that communicate much.", worth="5 to 20x bandwidth", cost="money"
    )
    return (on, less, overlap) if usable else (less, overlap, other)
