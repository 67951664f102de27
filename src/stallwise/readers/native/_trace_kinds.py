"""What each year and vendor called a sort of event, and what we call it."""

from __future__ import annotations

import re

from stallwise.evidence.timeline import Kind

_BY_CATEGORY = {
    "kernel": Kind.KERNEL,
    "gpu_op": Kind.KERNEL,
    "concurrent_kernel": Kind.KERNEL,
    "hpu_op": Kind.KERNEL,
    "mtia_workloadd": Kind.KERNEL,
    "gpu_memcpy": Kind.MEMCPY,
    "memcpy": Kind.MEMCPY,
    "gpu_memset": Kind.MEMSET,
    "memset": Kind.MEMSET,
    "cpu_op": Kind.CPU_OP,
    "operator": Kind.CPU_OP,
    "external_correlation": Kind.OTHER,
    "user_annotation": Kind.ANNOTATION,
    "gpu_user_annotation": Kind.GPU_ANNOTATION,
    "python_function": Kind.PYTHON,
    "python": Kind.PYTHON,
    "overhead": Kind.OVERHEAD,
    "cuda_sync": Kind.SYNC,
    "cpu_instant_event": Kind.MEMORY,
}
_RUNTIME = re.compile(r"(^|_)(runtime|driver)$")  # cuda_runtime, hip_runtime, xpu_runtime, Runtime, cuda_driver
_ENGINE_EVENTS = re.compile(r"^mtia_.*events?$")  # the accelerator's own queue: copies, waits and work in one category
_QUEUE_WORDS = {"dma_request": Kind.MEMCPY, "event_record": Kind.SYNC, "event_wait": Kind.SYNC}

# Profilers of 2021 called every host range an operator; these names are ranges.
_RANGES = re.compile(
    r"^(ProfilerStep#|enumerate\(DataLoader\)|Optimizer\.|DistributedDataParallel\.|FullyShardedDataParallel\."
    r"|nccl:|gloo:|mpi:|DataParallel\.|## )"
)
ENGINE_QUEUE = 254  # inner mark, resolved by name at the end
UNCATEGORISED = 255  # inner mark, resolved by lane at the end


class KindCodes(dict[str, int]):
    """Category to kind, filled as categories appear."""

    def __missing__(self, category: str) -> int:
        word = category.lower()
        if not word:
            code = UNCATEGORISED
        elif _RUNTIME.search(word):
            code = int(Kind.RUNTIME)
        elif _ENGINE_EVENTS.match(word):
            code = ENGINE_QUEUE
        else:
            code = int(_BY_CATEGORY.get(word, Kind.OTHER))
        self[category] = code
        return code


def is_range(name: str) -> bool:
    """True for names that are ranges even where the trace calls them operators."""
    return _RANGES.match(name) is not None


def of_queue_word(name: str) -> Kind:
    """The kind of an entry of an accelerator's own queue."""
    return _QUEUE_WORDS.get(name, Kind.KERNEL)


def of_process(label: str, name: str) -> Kind:
    """The kind of an event without a category, from its process: the 2020 autograd profiler and JAX name those."""
    word = label.lower()
    if "cuda functions" in word or word.startswith("/device:"):
        lowered = name.lower()
        if lowered.startswith("memcpy"):
            return Kind.MEMCPY
        return Kind.MEMSET if lowered.startswith("memset") else Kind.KERNEL
    if "cpu functions" in word or word.startswith("/host:"):
        return Kind.CPU_OP
    return Kind.OTHER
