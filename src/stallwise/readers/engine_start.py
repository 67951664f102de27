"""How an engine was launched and how its start went: arguments, memory lines, phases, and late compiles.

Reads vLLM, SGLang and TensorRT-LLM logs, and launch commands in scripts, unit files and notebooks.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from stallwise.evidence.artifact import Artifact
from stallwise.evidence.catalog import serving
from stallwise.evidence.evidence import Item
from stallwise.evidence.fact import Fact, Scope, Source
from stallwise.evidence.quantity import Quantity
from stallwise.readers._log_line import clock_of
from stallwise.units import Unit, parse

FORMAT = "engine start-up"
_ENGINES = (b"vllm", b"vLLM", b"sglang", b"SGLang", b"trtllm", b"TRT-LLM", b"LLM engine", b"GPU KV cache size", b"# GPU blocks",
            b"server_args=", b"cuda blocks", b"Maximum concurrency for", b"Application startup complete", b"EngineCore")  # fmt: skip
# Names of an argument in commands, Python dicts, Namespaces and engine configs.
_ARGUMENTS: tuple[tuple[str, Quantity], ...] = (
    (r"max[-_]num[-_]seqs|max[-_]running[-_]requests|max[-_]batch[-_]size", serving.MAX_SEQS),
    (r"max[-_]num[-_]batched[-_]tokens|chunked[-_]prefill[-_]size|max[-_]num[-_]tokens", serving.MAX_BATCHED_TOKENS),
    (r"max[-_]model[-_]len|max[-_]seq[-_]len|context[-_]length", serving.MAX_LENGTH),
    (r"tensor[-_]parallel[-_]size|tp[-_]size|(?<![\w-])--tp", serving.TP),
    (r"(?<!scheduler )block[-_]size", serving.BLOCK_TOKENS),
)
_NUMBERED = tuple((re.compile(rf"(?:{names})['\"]?\s*(?:[:=]\s*|\s+)['\"]?(\d+)"), q) for names, q in _ARGUMENTS)
_FLAGS: tuple[tuple[re.Pattern[str], Quantity, bool], ...] = (
    (re.compile(r"enable[-_]prefix[-_]caching['\"]?\s*[:=]\s*True|--enable-prefix-caching"), serving.PREFIX_CACHING, True),
    (re.compile(r"enable[-_]prefix[-_]caching['\"]?\s*[:=]\s*False|--no-enable-prefix-caching"
                r"|--disable-radix-cache|disable_radix_cache=True"),
     serving.PREFIX_CACHING, False),
    (re.compile(r"chunked[-_]prefill(?:[-_]enabled)?['\"]?\s*[:=]\s*True|--enable-chunked-prefill|Chunked prefill is enabled"),
     serving.CHUNKED_PREFILL, True),
    (re.compile(r"chunked[-_]prefill(?:[-_]enabled)?['\"]?\s*[:=]\s*False|--no-enable-chunked-prefill|chunked_prefill_size=-1"),
     serving.CHUNKED_PREFILL, False),
    (re.compile(r"enforce[-_]eager['\"]?\s*[:=]\s*True|--enforce-eager|--disable-cuda-graph|disable_cuda_graph=True"),
     serving.EAGER, True),
)  # fmt: skip
_N = r"([\d,]+(?:\.\d+)?)"
_LINES: tuple[tuple[re.Pattern[str], Quantity], ...] = (
    (re.compile(rf"(?:GPU )?KV cache size[:=] ?{_N} tokens"), serving.KV_TOKENS),
    (re.compile(rf"Maximum concurrency for [\d,]+ tokens per request[:=] ?{_N}x"), serving.MAX_CONCURRENCY),
    (re.compile(rf"max(?:imum)? model len(?:gth)? (?:of )?{_N}"), serving.MAX_LENGTH),
    (re.compile(rf"attention block size to {_N} tokens"), serving.BLOCK_TOKENS),
    (re.compile(rf"scheduler block size:? {_N}"), serving.BLOCK_TOKENS),
)
_MEMORY: tuple[tuple[re.Pattern[str], Quantity], ...] = (
    (re.compile(r"Available KV cache memory[:=] ?([\d.]+ ?[KMGT]i?B)"), serving.KV_MEMORY),
    (re.compile(r"(?:Loading model weights|Model loading) took ([\d.]+ ?[KMGT]i?B)"), serving.WEIGHT_MEMORY),
)
_BLOCKS = re.compile(rf"# (?:GPU|cuda|CUDA) blocks[:=] ?{_N}")
_MODEL = re.compile(r"(?:model(?:_path|_tag)?['\"]?\s*[:=]\s*['\"]|vllm serve |--model(?:-path)?[ =])([\w./-]+)")
_VERSION = re.compile(r"LLM engine \(v([\w.+-]+)\)|API server version v?([\w.+-]+)")
_DTYPE = re.compile(r"(?:quantization|--quantization)['\"]?\s*[:= ]\s*['\"]?([a-z][\w-]*)")
_TOOK = re.compile(
    r"\]?\s*([A-Za-z][^:\]]{2,70}?)\s+(?:took|takes|finished in|time:)\s+(?:[\d.]+ ?[KMGT]i?B memory and\s+)?"
    r"([\d.]+)\s*(?:s|secs?|seconds)\b"
)
_READY = re.compile(
    r"Application startup complete|fired up and ready to roll|Uvicorn running on|Server ready|startup complete"
)
_LATE = re.compile(r"(?:JIT compilation|[Cc]ompil\w+|autotun\w+).{0,20} during inference:?\s*([\w.:-]*)")
DEFAULT_BLOCK = 16


def recognises(name: str, head: bytes) -> bool:
    """Words of an engine, and a line or argument it takes."""
    if not any(mark in head for mark in _ENGINES):
        return False
    text = head.decode("utf-8", "replace")
    return bool(
        _READY.search(text) or _MODEL.search(text) or _VERSION.search(text) or _LATE.search(text) or _BLOCKS.search(text)
        or any(p.search(text) for p, _ in (*_NUMBERED, *_LINES, *_MEMORY)) or any(p.search(text) for p, _, _ in _FLAGS)
    )  # fmt: skip


def read(artifact: Artifact) -> Iterator[Item]:
    """Facts line by line; phases of the start until the engine says that it is ready."""
    first_s: float | None = None
    block = float(DEFAULT_BLOCK)
    ready = False
    for number, text in enumerate(artifact.lines(), 1):
        source = Source(artifact.name, f"line {number}")
        clock_s = clock_of(text)
        first_s = clock_s if first_s is None else first_s
        for fact in _facts(text, source):
            block = fact.number if fact.quantity is serving.BLOCK_TOKENS else block
            yield fact
        if match := _BLOCKS.search(text):
            yield Fact(serving.KV_TOKENS, _number(match[1]) * block, source)
        if not ready and (match := _TOOK.search(text)):
            phase = re.sub(r"\s*\(.*?\)?$", "", match[1].strip())[-60:]
            yield Fact(serving.START_PHASE, float(match[2]), source, Scope(layer=phase))
        if match := _LATE.search(text):
            yield Fact(serving.LATE_COMPILE, match[1].rstrip(".") or "a kernel", source)
        if not ready and _READY.search(text):
            ready = True
            if clock_s is not None and first_s is not None and clock_s > first_s:
                yield Fact(serving.READY_TIME, clock_s - first_s, source)


def _facts(text: str, source: Source) -> Iterator[Fact]:
    for pattern, quantity in (*_NUMBERED, *_LINES):
        if match := pattern.search(text):
            yield Fact(quantity, _number(match[1]), source)
    for pattern, quantity in _MEMORY:
        if match := pattern.search(text):
            yield Fact(quantity, parse(match[1].replace(" ", ""), Unit.BYTE), source)
    for pattern, quantity, value in _FLAGS:
        if pattern.search(text):
            yield Fact(quantity, float(value), source)
    if (match := _MODEL.search(text)) and any(c.isalpha() for c in match[1]):
        yield Fact(serving.MODEL, match[1], source)
    if match := _VERSION.search(text):
        yield Fact(serving.VERSION, match[1] or match[2], source)
    if (match := _DTYPE.search(text)) and match[1] not in ("none", "auto"):
        yield Fact(serving.WEIGHTS, match[1], source)


def _number(text: str) -> float:
    return float(text.replace(",", ""))
