"""Out-of-memory messages of PyTorch 0.4 to 2.15 (CUDA, HIP, XPU), JAX, TensorFlow, CUDA itself and serving engines."""

from __future__ import annotations

import re

from stallwise.evidence.catalog import memory as m
from stallwise.evidence.quantity import Quantity
from stallwise.units import Unit, parse

_SIZE = r"(?<![\d.,])([\d.,]{1,40}\s{0,4}(?:[KMGTPE]i?B|bytes|B|[KMGT]\b))"
WORDS = (
    b"out of memory", b"outofmemory", b"resource_exhausted", b"exceed allowed memory", b"oom when allocating",
    b"no available memory for the cache", b"max seq len", b"not enough memory", b"cublas_status_alloc_failed", b"oom-kill",
    b"is less than desired gpu memory utilization", b"memoryallocation", b"killed by signal: killed", b"oomkilled",
    b"exitcode  : -9", b"exitcode : -9", b"# gpu blocks: 0",
)  # fmt: skip

# Each pattern: the wording's name, the expression, and the quantities of its groups.
_PATTERNS: tuple[tuple[str, re.Pattern[str], tuple[Quantity | None, ...]], ...] = (
    ("PyTorch", re.compile(rf"(?:CUDA|HIP|XPU|MPS backend|NPU) out of memory\. Tried to allocate {_SIZE}"),
     (m.REQUEST,)),
    ("PyTorch", re.compile(rf"total capac(?:i)?ty of {_SIZE} of which {_SIZE} is free"), (m.CAPACITY, m.FREE)),
    ("PyTorch", re.compile(rf"this process has {_SIZE} memory in use"), (m.PROCESS_USE,)),
    ("PyTorch", re.compile(rf"Of the allocated memory {_SIZE} is allocated by PyTorch"), (m.ALLOCATED,)),
    ("PyTorch", re.compile(rf"{_SIZE} allocated in private pools"), (m.PRIVATE_POOLS,)),
    ("PyTorch", re.compile(rf"{_SIZE} is reserved by PyTorch but unallocated"), (m.UNUSED_RESERVED,)),
    ("PyTorch", re.compile(rf"{_SIZE} total capacity; {_SIZE} already allocated"), (m.CAPACITY, m.ALLOCATED)),
    ("PyTorch", re.compile(rf"already allocated; {_SIZE} free"), (m.FREE,)),
    ("PyTorch", re.compile(rf"free; (?:[\d.]+ \w+ allowed; )?{_SIZE} (?:cached|reserved in total)"), (m.RESERVED,)),
    ("PyTorch", re.compile(rf"{_SIZE} cached\)"), (m.RESERVED,)),
    ("PyTorch", re.compile(rf"{_SIZE} allowed;"), (m.CAPACITY,)),
    ("PyTorch", re.compile(rf"Currently allocated\s*:\s*{_SIZE}"), (m.ALLOCATED,)),
    ("PyTorch", re.compile(rf"Requested\s*:\s*{_SIZE}"), (m.REQUEST,)),
    ("PyTorch", re.compile(rf"Device limit\s*:\s*{_SIZE}"), (m.CAPACITY,)),
    ("PyTorch", re.compile(rf"Free \(according to CUDA\)\s*:\s*{_SIZE}"), (m.FREE,)),
    ("MPS", re.compile(rf"MPS allocated: {_SIZE}, other allocations: {_SIZE}, max allowed: {_SIZE}"),
     (m.ALLOCATED, None, m.CAPACITY)),
    ("JAX", re.compile(r"Out of memory (?:while trying to allocate|allocating) (\d+)(?: bytes)"), (m.REQUEST,)),
    ("JAX", re.compile(rf"Attempting to (?:reserve|allocate) {_SIZE}.*?There are {_SIZE} free", re.S),
     (m.REQUEST, m.FREE)),
    ("JAX", re.compile(rf"ran out of memory trying to allocate {_SIZE}"), (m.REQUEST,)),
    ("llama.cpp", re.compile(rf"allocating {_SIZE} on device"), (m.REQUEST,)),
    ("llama.cpp", re.compile(r"(?:failed to allocate|allocating) (?:\w+ )?buffer of size (\d+)"), (m.REQUEST,)),
    ("vLLM", re.compile(rf"{_SIZE} KV cache is needed.*?available KV cache memory \({_SIZE}\)", re.S),
     (m.KV_NEEDED, m.KV_AVAILABLE)),
    ("vLLM", re.compile(r"max seq len \(([\d,]+)\).*?maximum number of tokens.*?\(([\d,]+)\)", re.S),
     (m.MAX_LENGTH, m.KV_TOKENS)),
)  # fmt: skip
_SHAPE = re.compile(r"OOM when allocating tensor with shape\[([\d,]+)\] and type (\w+)")
_WIDTHS = {"double": 8, "int64": 8, "float": 4, "int32": 4, "half": 2, "bfloat16": 2, "int8": 1, "bool": 1}
_MORE_THAN = re.compile(r"Tried to allocate more than 1EB memory")
_FREE_OF = re.compile(r"Free memory on device(?: \S+)? \(([\d.]+)/([\d.]+) GiB\)")
_KV_EMPTY = re.compile(
    r"No available memory for the cache blocks|# GPU blocks: 0\b|kv_cache_size=-|Available KV cache memory: -|"
    r"Not enough memory\. Please try (?:to increase|increasing) --mem-fraction-static|"
    r"failed to allocate buffer for kv cache|llama_kv_cache_init\(\) failed|"
    r"larger than the maximum number of tokens that can be stored in KV cache|KV cache is needed, which is larger",
)
_FRACTION = re.compile(
    r"(?:gpu_memory_utilization|mem[_-]fraction[_-]static|GPU memory utilization \()[=: ]*([01]?\.\d+|1\.0)"
)
_MAX_LENGTH = re.compile(r"\b(?:max_seq_len|max_model_len|context_length|max_total_tokens)[=: ]+(\d+)")
REFUSED = re.compile(
    r"Free memory on device(?: \S+)? \(([\d.]+)/([\d.]+) GiB\) on startup is less than desired "
    r"GPU memory utilization \([\d.]+, ([\d.]+) GiB\)"
)
DEVICE_FAILURE = re.compile(
    r"(?:CUDA|HIP|XPU|MPS backend|NPU) out of memory|torch\S*OutOfMemoryError|cuda runtime error \(2\)|"
    r"CUDA error: out of memory|would exceed allowed memory|RESOURCE_EXHAUSTED|OOM when allocating|"
    r"ran out of memory trying|CUBLAS_STATUS_ALLOC_FAILED|cudaErrorMemoryAllocation|hipErrorOutOfMemory|"
    r"cudaMalloc failed: out of memory|Cuda failure.*out of memory|OutOfMemoryError",
)
HOST_FAILURE = re.compile(
    r"oom-kill|Out of memory: Killed process|invoked oom-killer|killed by signal: Killed|exitcode\s*: -9|"
    r"OOMKilled|exit code 137|(?<!\w)MemoryError\b",
)


def sizes_in(text: str) -> dict[Quantity, float]:
    """Every number of the message in bytes or tokens."""
    found: dict[Quantity, float] = {}
    for _, pattern, quantities in _PATTERNS:
        if match := pattern.search(text):
            for quantity, group in zip(quantities, match.groups(), strict=False):
                value = _size(group, quantity) if quantity is not None and group else None
                if quantity is not None and value is not None:
                    found.setdefault(quantity, value)
    if _MORE_THAN.search(text):
        found[m.REQUEST] = 2.0**60
    if match := _FREE_OF.search(text):
        found[m.FREE], found[m.CAPACITY] = float(match[1]) * 2**30, float(match[2]) * 2**30
    if m.RESERVED in found and m.ALLOCATED in found:
        found.setdefault(m.UNUSED_RESERVED, max(0.0, found[m.RESERVED] - found[m.ALLOCATED]))
    return found


def shape_in(text: str) -> tuple[str, float] | None:
    """The tensor's shape and bytes, where the message (TensorFlow's) prints them."""
    match = _SHAPE.search(text)
    if match is None:
        return None
    elements = 1.0
    for part in match[1].split(","):
        elements *= float(part or 1)
    return match[1].replace(",", " x "), elements * _WIDTHS.get(match[2], 4)


def engine_facts(text: str) -> dict[Quantity, float]:
    """What a serving engine says of its KV cache at start-up."""
    found: dict[Quantity, float] = {}
    if not _KV_EMPTY.search(text):
        return found
    found[m.KV_NO_ROOM] = 1.0
    if match := _FRACTION.search(text):
        found[m.MEMORY_FRACTION] = float(match[1])
    if match := _MAX_LENGTH.search(text):
        found[m.MAX_LENGTH] = float(match[1])
    return found


def wording_of(text: str) -> str:
    """Whose message it is."""
    for name, pattern, _ in _PATTERNS:
        if pattern.search(text):
            return name
    return "CUDA"


def _size(text: str, quantity: Quantity) -> float | None:
    cleaned = text.replace(",", "").strip()
    if quantity.unit is Unit.TOKEN:
        return float(cleaned)
    cleaned = re.sub(r"\s*bytes$", "B", cleaned)
    if re.fullmatch(r"[\d.]+\s*[KMGT]", cleaned):
        cleaned += "iB"  # XLA prints 12.34G and means GiB
    if re.fullmatch(r"[\d.]+", cleaned):
        return float(cleaned)
    return parse(cleaned, Unit.BYTE)
