# ruff: noqa: E501  (a table: one row a cause)
"""Causes in people's words: a phrase counts when every one of its word beginnings is in the text."""

from __future__ import annotations

import re

# The class of a cause: what a player must at least have narrowed it down to.
CLASSES: dict[str, tuple[str, ...]] = {
    "kernel": ("kernel", "tensor core", "memory access", "warp", "register", "shared memory", "autotun", "instruction"),
    "step": ("host", "input", "loader", "data pipeline", "launch", "sync", "python", "checkpoint", "compil", "copy", "copies",
             "optimizer", "elementwise", "attention", "recompute", "allocator", "evaluation", "precision", "shape"),
    "distributed": ("communicat", "network", "collective", "straggler", "slow node", "slow rank", "one rank", "fabric", "nccl",
                    "pipeline", "stage", "topology", "interconnect", "expert", "parallelism"),
    "hang": ("hang", "deadlock", "desync", "rank", "nccl", "network", "interface", "limit", "collective", "timeout", "p2p"),
    "hardware": ("hardware", "node health", "throttl", "broken", "faulty", "bad gpu", "bad card", "xid", "ecc", "pcie", "nvlink",
                 "clock", "driver", "machine"),
    "memory": ("memory", "oom", "allocat", "leak", "fragment"),
    "serving": ("serving", "queue", "prefill", "decode", "kv", "scheduler", "engine", "prefix", "client", "latency"),
    "numerics": ("numeric", "precision", "overflow", "underflow", "fp16", "fp8", "gradient", "loss scal", "nan", "outlier", "batch is bad"),
}  # fmt: skip
MECHANISMS: dict[str, tuple[str, ...]] = {
    "tensor-cores-unused": ("not tensor core", "cuda core", "simt", "fp32 gemm", "sgemm"),
    "tensor-cores-starved": ("tensor core starv", "tensor core wait", "tensor core underus", "tensor fed", "no async copy", "no pipelining"),
    "uncoalesced-access": ("uncoalesced", "strided", "scattered access", "sectors wast"),
    "shared-bank-conflicts": ("bank conflict",),
    "warp-divergence": ("diverg",),
    "register-spills": ("spill",),
    "latency-bound-low-occupancy": ("low occupancy", "few warps", "latency bound"),
    "grid-too-small": ("grid small", "few blocks", "fewer blocks", "waves under"),
    "block-imbalance": ("block imbalance", "blocks longer", "uneven blocks", "ragged block"),
    "barrier-stalls": ("barrier", "syncthreads"),
    "fp64-in-hot-path": ("fp64", "double precision", "doubles"),
    "autotune-space-too-small": ("autotun small", "few config", "search space", "autotun two"),
    "misaligned-shapes": ("misalign", "not multiple", "odd dimension", "alignment", "padding vocab"),
    "atomic-contention": ("atomic",),
    "tail-wave": ("tail", "last wave", "partial wave", "one block too many", "wave quantis", "wave quantiz"),
    "precision-headroom": ("tf32", "16 bit", "bf16", "lower precision"),
    "input-bursty": ("input late", "bursty", "input burst", "storage", "late batch"),
    "host-work-unattributed": ("host pause", "unattributed", "host busy", "python outside", "host outside"),
    "decode-bandwidth-bound": ("bandwidth bound", "memory bound", "reads weights", "weights read"),
    "cold-start": ("cold start", "start up", "warm up", "compile at start"),
    "pipeline-p2p-latency": ("p2p latency", "hand off", "send recv", "send receive"),
    "pipeline-bubble": ("bubble", "few microbatch", "few micro batch"),
    "input-starved": ("input starv", "loader slow", "data load", "dataloader", "waits batch", "waits data"),
    "h2d-copy-exposed": ("pageable", "host to device cop", "h2d", "unpinned", "not pinned"),
    "cpu-offload-transfers": ("offload",),
    "host-sync": ("host sync", "item()", ".cpu()", "synchroni", "device to host", "blocking fetch"),
    "launch-bound": ("launch bound", "short kernels", "launch overhead", "small kernels", "cuda graphs"),
    "python-gc-pauses": ("garbage collect", "gc pause", "python gc", "collector"),
    "allocator-churn": ("allocator churn", "cudamalloc", "cudafree", "alloc retr", "allocator retr", "cache flush"),
    "elementwise-unfused": ("unfused", "elementwise", "pointwise", "not fused"),
    "attention-materialized": ("attention material", "scores material", "no flash", "n x n score", "unfused attention"),
    "optimizer-unfused": ("optimizer unfused", "optimizer tensor by tensor", "optimizer small kernels", "optimizer not fused", "foreach"),
    "recompute-unneeded": ("recompute", "recomputation", "activation checkpoint"),
    "checkpoint-stall": ("checkpoint", "saving"),
    "recompilation": ("recompil",),
    "graph-breaks": ("graph break",),
    "layout-copies": ("contiguous", "transpose", "layout cop"),
    "eval-in-loop": ("evaluation", "validation", "extra forward"),
    "straggler-rank": ("straggler", "slow rank", "slow node", "degraded node", "one rank", "late rank", "node degraded", "bad node"),
    "network-fallback-socket": ("socket", "tcp"),
    "gdr-disabled": ("gpudirect", "gdr", "through host memory"),
    "tp-crosses-nodes": ("tensor parallel cross", "tp cross", "tensor parallel span", "tp two nodes", "tensor parallel nodes"),
    "collective-topology-cliff": ("topology", "pod border", "spine", "rack boundar", "slower link", "cross pod"),
    "pcie-instead-of-nvlink": ("pcie instead", "not nvlink", "nvlink not", "over pcie", "without nvlink", "p2p off"),
    "pipeline-stage-imbalance": ("stage imbalance", "imbalanced stage", "slowest stage", "uneven stage", "stages balanced", "heavy stage"),
    "moe-imbalance": ("expert imbalance", "uneven expert", "hot expert", "expert load", "moe imbalance"),
    "collective-mismatch": ("mismatch", "different collective", "different sizes", "desync", "different operation"),
    "rank-died-first": ("died first", "rank died", "one rank fail", "rank crash", "exception one rank", "killed", "root failure"),
    "uneven-batches": ("uneven batch", "fewer batch", "different number batch", "one batch less", "dataset length"),
    "wrong-network-interface": ("wrong interface", "docker0", "loopback", "wrong network interface", "nccl_socket_ifname", "bridge interface"),
    "transport-never-worked": ("never worked", "never completed", "first collective", "no collective"),
    "shm-too-small": ("/dev/shm", "shared memory small", "shm"),
    "p2p-acs-iommu": ("acs", "iommu"),
    "nccl-version-mismatch": ("nccl version", "different nccl", "version mismatch"),
    "memlock-limit": ("memlock", "locked memory"),
    "thermal-throttle": ("thermal", "overheat", "too hot", "heat throttl", "temperature"),
    "power-throttle": ("power limit", "power cap", "power throttl", "power brake", "held by power"),
    "gpu-memory-errors": ("ecc", "memory error", "row remap", "double bit"),
    "gpu-fell-off-bus": ("fell off", "fallen off", "lost pcie", "xid 79", "gsp", "gpu lost"),
    "nvlink-fault": ("nvlink fault", "nvlink error", "xid 74", "nvlink fail", "nvswitch"),
    "pcie-link-downgrade": ("pcie downgrade", "pcie gen", "link width", "pcie link", "link downgrade"),
    "application-fault": ("application fault", "illegal memory", "bad address", "out of range address", "software bug", "mmu fault", "xid 13", "xid 31"),
    "oom-fragmentation": ("fragment", "in pieces"),
    "oom-activations": ("activation",),
    "oom-attention-scores": ("attention score", "score matri", "n x n", "quadratic attention", "scores material"),
    "oom-logits": ("logit", "vocabulary cross", "cross entropy"),
    "oom-optimizer-state": ("optimizer stat", "adam stat", "moments"),
    "oom-kv-cache": ("kv cache", "kv room"),
    "oom-eval-grad": ("no_grad", "validation graph", "eval grad", "inference_mode", "validation keep", "evaluation grad"),
    "oom-cuda-graphs": ("cuda graph", "graph capture"),
    "oom-other-process": ("other process", "another process", "neighbour process", "zombie"),
    "oom-size-bug": ("size bug", "impossible size", "absurd request", "wrong shape", "bogus size", "larger than the card"),
    "memory-leak": ("leak", "grows every step", "retained graph"),
    "oom-sharding-peak": ("gathered layer", "sharding peak", "unsharded", "per rank activation", "gather"),
    "kv-cache-preemption": ("preempt", "evict recompute", "kv full", "thrash"),
    "kv-cache-too-small": ("kv small", "kv room few", "few requests fit", "kv cache too small"),
    "prefill-decode-contention": ("prefill decode", "prefill block", "chunked prefill", "prompts stall", "prefill interrupt", "prefill hold"),
    "batch-cap-too-low": ("batch cap", "max_num_seqs", "concurrency cap", "concurrency limit", "scheduler cap"),
    "queue-saturated": ("saturat", "over capacity", "overload", "past the knee", "arrival exceed", "more arrive"),
    "prefix-cache-miss": ("prefix miss", "prefix not reused", "prefix block", "prefix cache"),
    "head-of-line-blocking": ("head of line", "one huge request", "one long request", "giant prompt"),
    "cpu-bound-engine": ("cpu bound", "host slower", "host bound", "scheduler cpu", "host step"),
    "client-limited": ("client limit", "load generator", "client serial", "one at a time"),
    "fp16-overflow": ("fp16 overflow", "65504", "half overflow", "overflow"),
    "loss-scale-collapse": ("loss scale", "scale collapse", "scale halv"),
    "fp8-saturation": ("saturat", "calibrat", "clipp", "amax"),
    "grad-explosion": ("gradient explo", "grad explo", "gradient norm grow", "gradient grow", "exploding"),
    "bad-batch": ("bad batch", "outlier", "bad data", "single batch", "corrupt batch"),
}  # fmt: skip


def plain(text: str) -> str:
    """Lower case, hyphens as spaces; dots, slashes and brackets stay, they carry meaning in code."""
    return re.sub(r"\s+", " ", text.lower().replace("-", " ").replace("’", "'")).strip()


def matched(text: str, phrases: tuple[str, ...]) -> str | None:
    """The first phrase whose every word begins a word of the text; shown to the player."""
    words = f" {plain(text)}"
    for phrase in phrases:
        if all(re.search(rf"(?<![a-z0-9]){re.escape(stem)}", words) for stem in phrase.split()):
            return phrase
    return None


def names_cause(text: str, cause: str) -> str | None:
    """How the text names this mechanism, if it does."""
    return matched(text, (cause.replace("-", " "), *MECHANISMS.get(cause, ())))


def names_class(text: str, family: str) -> str | None:
    """How the text names the class, if it does."""
    return matched(text, CLASSES.get(family, ()))


def causes_named(text: str) -> set[str]:
    """All mechanisms a text names: a list of everything is no diagnosis."""
    return {cause for cause in MECHANISMS if names_cause(text, cause)}
