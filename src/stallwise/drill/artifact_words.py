"""What people call the artifacts they ask for, and which kind they mean."""

from __future__ import annotations

import re

# Phrases, most telling first; the kind whose phrases cover most letters of the request wins.
KINDS: dict[str, tuple[str, ...]] = {
    "case": ("setup", "config", "case", "settings", "layout", "facts", "model size"),
    "ncu": ("nsight compute", "ncu", "kernel counters", "kernel profile", "stall reasons", "warp stall", "roofline",
            "achieved occupancy", "tensor core util", "counters", "hardware counters", "sass", "speed of light"),
    "sass": ("sass", "disassembl", "instructions emitted", "cuobjdump"),
    "autotune": ("autotun", "triton config", "search space", "configurations tried", "tuning log", "wide search"),
    "trace": ("profiler trace", "torch profiler", "pytorch profiler", "trace", "timeline", "kineto", "nsys",
              "nsight systems", "chrome trace", "step profile"),
    "rank-times": ("per rank", "each rank", "rank times", "rank timing", "every rank", "all ranks", "by rank", "nccl per rank",
                   "arrival", "step time histogram", "straggler", "per node", "tokens per expert", "expert load"),
    "stage-times": ("per stage", "stage time", "p2p share", "send recv", "hand off",
                    "every stage", "pipeline stage", "stage times", "stage timing", "by stage", "each stage", "stages"),
    "nccl-log": ("nccl debug", "nccl log", "nccl info", "nccl_debug", "nccl s own account", "transports and rings",
                 "nccl init", "nccl"),
    "nccl-tests": ("nccl tests", "nccl test", "all reduce perf", "all_reduce_perf", "bus bandwidth", "busbw", "bandwidth test"),
    "scaling": ("scaling", "time by number of gpus", "by number of ranks", "allreduce times", "all reduce times"),
    "rank-logs": ("watchdog", "rank logs", "logs of all ranks", "stderr", "job log", "traceback", "error log", "flight recorder",
                  "stack", "timeout message", "launcher", "crash log"),
    "pair-test": ("pair", "p2p test", "peer to peer", "peer access", "p2pbandwidth"),
    "limits": ("ulimit", "limits", "memlock", "locked memory"),
    "gpu-state": ("nvidia smi", "nvidia-smi", "throttle", "clocks", "temperature", "power draw", "ecc", "dcgm", "gpu health",
                  "pcie generation", "node health", "gpu state", "state of each gpu",
                  "state of the gpus"),
    "kernel-log": ("dmesg", "xid", "kernel log", "kernel messages", "syslog", "journalctl", "driver log"),
    "oom-message": ("oom message", "out of memory message", "oom error", "oom traceback", "error message", "allocator message",
                    "memory summary", "memory_summary", "allocator s summary", "allocator summary", "stack trace of the oom", "oom"),
    "memory-snapshot": ("memory snapshot", "snapshot", "memory_viz", "memory timeline", "memory profile"),
    "train-log": ("training log", "train log", "step times", "loss", "grad norm", "gradient norm", "loss scale", "step log",
                  "throughput over time", "data time", "step time",
                  "loader", "data loading rate", "metrics over time", "memory over time"),
    "loss-curve": ("loss curve", "loss", "grad norm", "gradient norm"),
    "compile-log": ("compile log", "recompil", "graph break", "torch_logs", "dynamo", "torch compile", "explain"),
    "engine-log": ("engine log", "vllm log", "server log", "iteration log", "running and waiting", "queue length", "kv cache usage",
                   "kv usage", "scheduler log", "engine s log", "engine"),
    "engine-metrics": ("metrics", "prometheus", "hit rate", "prefix cache metrics"),
    "bench": ("benchmark", "bench", "load test", "client", "request rate", "sweep", "request log", "requests"),
    "host-profile": ("py spy", "py-spy", "host spends", "host profile", "garbage collect", "gc log", "cpu profile", "top", "htop"),
    "stacks": ("python is doing", "stacks", "stack dump", "faulthandler", "where it hangs"),
    "topology": ("topology", "topo", "links join", "which links", "lspci"),
    "layer-stats": ("amax", "per layer", "layer stat", "activation max", "activation range", "saturation", "layer maxima"),
}  # fmt: skip
WHAT = {
    "case": "the setup as facts", "ncu": "Nsight Compute counters", "sass": "the machine code", "autotune": "the autotuner's log",
    "trace": "a profiler trace", "rank-times": "times by rank", "stage-times": "times by pipeline stage", "nccl-log": "NCCL's log",
    "nccl-tests": "nccl-tests", "scaling": "times by number of ranks", "rank-logs": "the logs of the ranks",
    "pair-test": "a test of GPU pairs", "limits": "resource limits", "gpu-state": "nvidia-smi", "kernel-log": "dmesg",
    "oom-message": "the out-of-memory message", "memory-snapshot": "a memory snapshot", "train-log": "the training log",
    "loss-curve": "the loss curve", "compile-log": "the compiler's log", "engine-log": "the engine's log",
    "engine-metrics": "the engine's metrics", "bench": "the load test", "layer-stats": "maxima by layer",
    "host-profile": "a profile of the host",
    "stacks": "Python stacks", "topology": "the topology of links",
}  # fmt: skip


def plain(text: str) -> str:
    """Lower case, words only."""
    return " ".join(re.findall(r"[a-z0-9_]+", text.lower()))


def meant(request: str) -> dict[str, str]:
    """Kinds that a request means, best first, each with the words that said so; one request may name several."""
    text = f" {plain(request)}"
    found: dict[str, str] = {}
    for kind, phrases in KINDS.items():
        hits = [p for p in map(plain, (*phrases, WHAT[kind])) if f" {p}" in text]
        if hits:
            found[kind] = max(hits, key=len)
    return dict(sorted(found.items(), key=lambda item: -len(item[1])))


def kinds_meant(request: str) -> tuple[str, ...]:
    """Only the kinds."""
    return tuple(meant(request))
