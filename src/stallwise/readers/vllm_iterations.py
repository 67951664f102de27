"""vLLM's lines of single iterations, and its warnings of preemption and lost KV."""

from __future__ import annotations

import re
from collections.abc import Iterator

from stallwise.evidence.artifact import Artifact
from stallwise.evidence.catalog import serving
from stallwise.evidence.evidence import Item
from stallwise.evidence.fact import Fact, Source
from stallwise.readers._cells import NUMBER
from stallwise.readers._engine_samples import EngineSamples
from stallwise.readers.shapes.clock import clock_of

FORMAT = "vLLM iterations"
_ITERATION = re.compile(  # VLLM_LOG_ITERATION_DETAILS
    r"Iteration\(\d+\)[:=] ?(\d+) context requests, (\d+) context tokens, (\d+) generation requests, (\d+) generation tokens, "
    rf"iteration elapsed time[:=] ?({NUMBER}) ms(?:, kv cache[:=] ?({NUMBER})%)?"
)


def recognises(name: str, head: bytes) -> bool:
    """Its line of an iteration."""
    return b"iteration elapsed time" in head


def read(artifact: Artifact) -> Iterator[Item]:
    """A table of samples."""
    samples = EngineSamples(artifact.name, "vllm")
    for number, text in enumerate(artifact.lines(), 1):
        if match := _ITERATION.search(text):
            samples.put(clock_of(text), number, **_iteration(match))
    table = samples.table()
    if table is not None:
        yield table
        yield Fact(serving.ENGINE, "vllm", Source(artifact.name))


def _iteration(match: re.Match[str]) -> dict[str, float | None]:
    prompts, prompted, decodes, generated = (float(match[i]) for i in range(1, 5))
    seconds = max(float(match[5]) / 1000, 1e-9)
    return {
        "running": prompts + decodes,
        "iteration_s": seconds,
        "prompt_token_per_s": prompted / seconds,
        "generation_token_per_s": generated / seconds,
        "kv_share": None if match[6] is None else float(match[6]) / 100,
    }
