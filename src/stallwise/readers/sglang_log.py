"""SGLang's prefill lines, its retractions and its memory lines."""

from __future__ import annotations

import re
from collections.abc import Iterator

from stallwise.evidence.artifact import Artifact
from stallwise.evidence.catalog import serving
from stallwise.evidence.evidence import Item
from stallwise.evidence.fact import Fact, Source

FORMAT = "SGLang log"
CAPTURE = "python -m sglang.launch_server ... 2>&1 | tee sglang.log"
_NEW = re.compile(r"#new-token[:=] ?(\d+)")
_CACHED = re.compile(r"#cached-token[:=] ?(\d+)")
_RETRACTED = re.compile(r"#retracted[_-]reqs?[:=] ?(\d+)")
_KV = re.compile(r"KV Cache is allocated\..*?#tokens[:=] ?(\d+)|max_total_num_tokens=(\d+)")
_ACCEPT = re.compile(r"accept rate[:=] ?([\d.]+)")
_LENGTH = re.compile(r"context_len=(\d+)")


def recognises(name: str, head: bytes) -> bool:
    """A batch line, a retraction or the ready line."""
    return (
        b"#running-req" in head or b"#queue-req" in head or b"#retracted_reqs" in head or b"fired up and ready" in head
    )


def read(artifact: Artifact) -> Iterator[Item]:
    """Tokens cached and computed; retractions; limits."""
    retracted = computed = cached = 0
    place = prefill_place = 0
    for number, text in enumerate(artifact.lines(), 1):
        if match := _KV.search(text):
            yield Fact(serving.KV_TOKENS, float(match[1] or match[2]), Source(artifact.name, f"line {number}"))
        if match := _LENGTH.search(text):
            yield Fact(serving.MAX_LENGTH, float(match[1]), Source(artifact.name, f"line {number}"))
        if match := _RETRACTED.search(text):
            retracted, place = retracted + int(match[1]), number
        if match := _ACCEPT.search(text):
            yield Fact(serving.ACCEPTANCE, float(match[1]), Source(artifact.name, f"line {number}"))
        if "Prefill batch" in text:
            computed += int(m[1]) if (m := _NEW.search(text)) else 0
            cached += int(m[1]) if (m := _CACHED.search(text)) else 0
            prefill_place = number
    if retracted:
        yield Fact(serving.PREEMPTED, float(retracted), Source(artifact.name, f"line {place}"))
    if computed + cached:
        source = Source(artifact.name, f"line {prefill_place}")
        yield Fact(serving.PREFIX_QUERIES, float(computed + cached), source)
        yield Fact(serving.PREFIX_HITS, float(cached), source)
    yield Fact(serving.ENGINE, "sglang", Source(artifact.name))
