"""vLLM's lines of single iterations, and its warnings of preemption and lost KV."""

from __future__ import annotations

import re
from collections.abc import Iterator

from stallwise.evidence.artifact import Artifact
from stallwise.evidence.catalog import serving
from stallwise.evidence.evidence import Item
from stallwise.evidence.fact import Fact, Source
from stallwise.readers._engine_samples import EngineSamples
from stallwise.readers._log_line import clock_of

FORMAT = "vLLM engine log"
CAPTURE = "vllm serve MODEL 2>&1 | tee vllm.log"
_N = r"([\d,]+(?:\.\d+)?)"
_PREEMPTION_TOTAL = re.compile(r"total_num_cumulative_preemption=(\d+)")
_PREEMPTION_LATELY = re.compile(r"Preemptions[:=] ?(\d+)")  # v1, since the line before
_PREEMPTION = re.compile(r"is preempted by PreemptionMode|[Pp]reempting request|has been preempted")
_RESCHEDULED = re.compile(r"(?<!\d)(\d+) request\(?s?\)? rescheduled")
_ABORTED = re.compile(r"Abort(?:ed|ing) request")
_ITERATION = re.compile(  # VLLM_LOG_ITERATION_DETAILS
    r"Iteration\(\d+\)[:=] ?(\d+) context requests, (\d+) context tokens, (\d+) generation requests, (\d+) generation tokens, "
    r"iteration elapsed time[:=] ?([\d.]+) ms(?:, kv cache[:=] ?([\d.]+)%)?"
)
_ACCEPTANCE = re.compile(rf"[Dd]raft acceptance rate:? {_N}(%?)")
_ENGINE = b"Avg prompt throughput"
_MARKS = (
    _ENGINE,
    b"iteration elapsed time",
    b"is preempted by PreemptionMode",
    b"request(s) rescheduled",
)


def recognises(name: str, head: bytes) -> bool:
    """Any of the lines it takes."""
    return any(mark in head for mark in _MARKS)


def read(artifact: Artifact) -> Iterator[Item]:
    """A table of samples, and how often requests were preempted, rescheduled or aborted."""
    samples = EngineSamples(artifact.name, "vllm")
    told, warned, place = 0, 0, 0
    rescheduled = aborted = 0
    for number, text in enumerate(artifact.lines(), 1):
        if match := _PREEMPTION_TOTAL.search(text):
            told, place = max(told, int(match[1])), number
        elif (match := _PREEMPTION_LATELY.search(text)) and int(match[1]):
            warned, place = warned + int(match[1]), number
        elif _PREEMPTION.search(text):
            warned, place = warned + 1, number
        if match := _RESCHEDULED.search(text):
            rescheduled += int(match[1])
            yield Fact(serving.RESCHEDULED, float(rescheduled), Source(artifact.name, f"line {number}"))
        if match := _ACCEPTANCE.search(text):
            share = _number(match[1]) / (100 if match[2] else 1)
            yield Fact(serving.ACCEPTANCE, share, Source(artifact.name, f"line {number}"))
        aborted += 1 if _ABORTED.search(text) else 0
        if match := _ITERATION.search(text):
            samples.put(clock_of(text), number, **_iteration(match))
    if told or warned:
        yield Fact(serving.PREEMPTED, float(max(told, warned)), Source(artifact.name, f"line {place}"))
    if aborted:
        yield Fact(serving.ABORTED, float(aborted), Source(artifact.name))
    table = samples.table()
    if table is not None:
        yield table
    if table is not None or _ENGINE in artifact.head:
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


def _number(text: str) -> float:
    return float(text.replace(",", ""))
