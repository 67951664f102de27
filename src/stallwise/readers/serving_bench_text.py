"""What `vllm bench serve` and `sglang.bench_serving` print: the table between two rulers."""

from __future__ import annotations

import re
from collections.abc import Iterator

from stallwise.evidence.artifact import Artifact
from stallwise.evidence.catalog import serving
from stallwise.evidence.evidence import Item
from stallwise.evidence.fact import Fact, Scope, Source
from stallwise.evidence.quantity import Quantity
from stallwise.readers._cells import NUMBER

FORMAT = "serving benchmark printout"
CAPTURE = "vllm bench serve ... | tee bench.txt"
_TITLE = re.compile(r"={4}\s*Serving Benchmark Result\s*={4}")
_RULER = re.compile(r"^(?=.*={20})\W*$")  # closes a table
ANNOUNCED = 8  # lines above a title
_ROW = re.compile(rf"^\W*([A-Z][\w /().,-]*?)(?: \(excl\. 1st token\))?:\s+({NUMBER}|inf)\s*$")
_ROWS: dict[str, tuple[Quantity, float]] = {
    "Median TTFT (ms)": (serving.TTFT, 1e-3),
    "P99 TTFT (ms)": (serving.TTFT_TAIL, 1e-3),
    "Median TPOT (ms)": (serving.TPOT, 1e-3),
    "P99 TPOT (ms)": (serving.TPOT_TAIL, 1e-3),
    "Request throughput (req/s)": (serving.ACHIEVED_RATE, 1.0),
    "Output token throughput (tok/s)": (serving.OUTPUT_RATE, 1.0),
    "Mean E2E Latency (ms)": (serving.REQUEST_TIME, 1e-3),
    "Mean E2EL (ms)": (serving.REQUEST_TIME, 1e-3),
    "Maximum request concurrency": (serving.CONCURRENCY, 1.0),
    "Max request concurrency": (serving.CONCURRENCY, 1.0),
    "Traffic request rate": (serving.OFFERED_RATE, 1.0),
    "Request rate configured (RPS)": (serving.OFFERED_RATE, 1.0),
}
_TOTALS = {"Total input tokens": serving.PROMPT_TOKENS, "Total generated tokens": serving.OUTPUT_TOKENS}


def recognises(name: str, head: bytes) -> bool:
    """Its title."""
    return b"Serving Benchmark Result" in head


def read(artifact: Artifact) -> Iterator[Item]:
    """Facts of each table; several are a sweep."""
    lines = artifact.lines()
    starts = [i for i, text in enumerate(lines) if _TITLE.search(text)]
    closed = 0
    for place, start in enumerate(starts):
        end = starts[place + 1] if place + 1 < len(starts) else len(lines)
        end = next((i for i in range(start + 1, end) if _RULER.match(lines[i])), end)
        above = max(closed, start - ANNOUNCED)  # the load is announced above the title, after the table before it
        closed = end
        scope = Scope(run=f"{artifact.name}#{place}") if len(starts) > 1 else Scope(run=artifact.name)
        yield from _table(artifact.name, lines, above, end, scope)


def _table(name: str, lines: list[str], start: int, end: int, scope: Scope) -> Iterator[Fact]:
    done = 0.0
    totals: list[tuple[Quantity, float, int]] = []
    for number in range(start, end):
        match = _ROW.match(lines[number])
        if not match or match[2] == "inf":
            continue
        key, value = match[1].strip(), float(match[2])
        if key == "Successful requests":
            done = value
        elif key in _TOTALS:
            totals.append((_TOTALS[key], value, number + 1))
        elif key in _ROWS:
            quantity, scale = _ROWS[key]
            yield Fact(quantity, value * scale, Source(name, f"line {number + 1}"), scope)
    for quantity, total, number in totals:
        if done:
            yield Fact(quantity, total / done, Source(name, f"line {number}"), scope)
