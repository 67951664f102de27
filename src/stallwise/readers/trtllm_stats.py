"""TensorRT-LLM's iteration statistics as JSON: the /metrics endpoint of trtllm-serve, or lines of it saved."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from stallwise.errors import UnreadableInput
from stallwise.evidence.artifact import Artifact
from stallwise.evidence.catalog import serving
from stallwise.evidence.evidence import Item
from stallwise.evidence.fact import Fact
from stallwise.readers._cells import number_of
from stallwise.readers._engine_samples import EngineSamples
from stallwise.readers.shapes.clock import clock_of

FORMAT = "TensorRT-LLM iteration statistics"
CAPTURE = "curl -s http://HOST:8000/metrics > stats.json"
_KEYS = (b'"kvCacheStats"', b'"inflightBatchingStats"', b'"numActiveRequests"')


def recognises(name: str, head: bytes) -> bool:
    """JSON with at least two of its blocks."""
    return head.lstrip()[:1] in (b"{", b"[") and sum(k in head for k in _KEYS) >= 2


def read(artifact: Artifact) -> Iterator[Item]:
    """A table of samples."""
    samples = EngineSamples(artifact.name, "trtllm")
    for number, entry in enumerate(_entries(artifact.text()), 1):
        _put(samples, entry, number)
    table = samples.table()
    if table is None:
        raise UnreadableInput(f"{artifact.name} holds no iteration", hint="curl http://HOST:PORT/metrics under load")
    yield Fact(serving.ENGINE, "trtllm", table.source)
    yield table


def _entries(text: str) -> Iterator[dict[str, Any]]:
    try:
        whole = json.loads(text)
        found = whole if isinstance(whole, list) else [whole]
    except (ValueError, RecursionError):
        found = []
        for line in text.splitlines():
            try:
                found.append(json.loads(line.strip().rstrip(",")))
            except (ValueError, RecursionError):
                continue
    for entry in found:
        yield from (e for e in (entry if isinstance(entry, list) else [entry]) if isinstance(e, dict))


def _put(samples: EngineSamples, entry: dict[str, Any], number: int) -> None:
    batch, cache = _block(entry, "inflightBatchingStats"), _block(entry, "kvCacheStats")
    took_s = _scaled(entry, "hostStepTimeMS") or _scaled(entry, "iterLatencyMS")
    most = _number(cache, "maxNumBlocks")
    used = _number(cache, "usedNumBlocks")
    generating, prompted = _number(batch, "numGenRequests"), _number(batch, "numCtxTokens")
    samples.put(
        clock_of(str(entry.get("timestamp", ""))), number,
        running=_number(batch, "numScheduledRequests", _number(entry, "numActiveRequests")),
        waiting=_number(entry, "numQueuedRequests"), paused=_number(batch, "numPausedRequests"),
        kv_share=used / most if used is not None and most else None, hit_share=_number(cache, "cacheHitRate"),
        iteration_s=took_s, device_s=_scaled(entry, "prevDeviceStepTimeMS"),
        generation_token_per_s=generating / took_s if generating is not None and took_s else None,
        prompt_token_per_s=prompted / took_s if prompted is not None and took_s else None,
    )  # fmt: skip


def _block(entry: dict[str, Any], key: str) -> dict[str, Any]:
    found = entry.get(key)
    return found if isinstance(found, dict) else {}


def _scaled(entry: dict[str, Any], key: str) -> float | None:
    value = _number(entry, key)
    return value / 1000 if value else None


def _number(entry: dict[str, Any], key: str, default: float | None = None) -> float | None:
    found = number_of(entry.get(key))
    return default if found is None else found
