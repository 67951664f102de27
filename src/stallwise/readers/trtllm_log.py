"""TensorRT-LLM's iteration lines, of the PyTorch backend and of the older C++ one, and its scheduler policy."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from stallwise.evidence.artifact import Artifact
from stallwise.evidence.catalog import serving
from stallwise.evidence.evidence import Item
from stallwise.evidence.fact import Fact, Source
from stallwise.readers._cells import NUMBER
from stallwise.readers._engine_samples import EngineSamples
from stallwise.readers.shapes.clock import clock_of

FORMAT = "TensorRT-LLM iteration log"
CAPTURE = "trtllm-serve MODEL 2>&1 | tee trtllm.log"
_ITERATION = re.compile(r"\biter = (\d+)|\"(?:Iteration Counter|iter)\":")
_POLICY = re.compile(
    r"(?:capacity|scheduler)[ _]?\w*[ _]policy:?\s*=?\s*['\"]?(?:CapacitySchedulerPolicy\.)?([A-Z_]{6,})", re.I
)
_STAMP = re.compile(r"\[(\d\d)/(\d\d)/(\d{4})-(\d\d:\d\d:\d\d)\]")
_PAIR = re.compile(rf"(?<!\w)['\"]?(\w{{1,80}})['\"]?\s*[:=]\s*({NUMBER})(s|ms)?(?:/(\d+))?")


def recognises(name: str, head: bytes) -> bool:
    """An iteration line of either backend."""
    return (
        (b"iter = " in head and b"num_scheduled_requests" in head)
        or b'"Active Request Count"' in head
        or b"currank_total_requests" in head
    )


def read(artifact: Artifact) -> Iterator[Item]:
    """A table of samples and the policy."""
    samples = EngineSamples(artifact.name, "trtllm")
    for number, text in enumerate(artifact.lines(), 1):
        if match := _POLICY.search(text):
            yield Fact(serving.EVICTION, match[1].upper(), Source(artifact.name, f"line {number}"))
        if '"Active Request Count"' in text:
            _old(samples, text[text.find("{") :], number)
        elif _ITERATION.search(text):
            _new(samples, text, number)
    table = samples.table()
    if table is not None:
        yield Fact(serving.ENGINE, "trtllm", table.source)
        yield table


def _new(samples: EngineSamples, text: str, number: int) -> None:
    values: dict[str, float] = {}
    total: float | None = None
    for key, value, unit, of in _PAIR.findall(text):
        try:
            values[key] = float(value) / (1000 if unit == "ms" else 1)
        except (ValueError, RecursionError):
            continue
        if key == "currank_total_requests" and of:
            total = float(value)
    running = values.get("num_scheduled_requests")
    iteration_s = values.get("host_step_time") or values.get("elapsed_time")
    tokens, context = values.get("num_generation_tokens"), values.get("num_ctx_tokens")
    paused = values.get("num_paused_requests")
    waiting = None if total is None or running is None else max(0.0, total - running)
    device_s = values.get("prev_device_step_time")
    samples.put(
        clock_of(_STAMP.sub(r"\3-\1-\2 \4", text)), number, running=running, waiting=waiting,
        kv_share=values.get("kv_cache_util"), iteration_s=iteration_s, paused=paused, device_s=device_s,
        generation_token_per_s=tokens / iteration_s if tokens is not None and iteration_s else None,
        prompt_token_per_s=context / iteration_s if context is not None and iteration_s else None,
    )  # fmt: skip


def _old(samples: EngineSamples, text: str, number: int) -> None:
    """The C++ executor prints one JSON object an iteration, counts in words."""
    try:
        entry = json.loads(text.strip().rstrip(","))
    except (ValueError, RecursionError):
        return
    words = {str(k).lower(): v for k, v in entry.items() if isinstance(v, (int, float))}
    used, most = words.get("used kv cache blocks"), words.get("max kv cache blocks")
    active, scheduled = words.get("active request count"), words.get("scheduled requests")
    running = scheduled if scheduled is not None else active
    samples.put(
        clock_of(str(entry.get("Timestamp", ""))), number, running=running,
        waiting=None if active is None or scheduled is None else max(0.0, active - scheduled),
        kv_share=used / most if used is not None and most else None, paused=words.get("paused requests"),
    )  # fmt: skip
