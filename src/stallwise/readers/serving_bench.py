"""Results of load generators: vllm and sglang bench serve (saved or printed), aiperf and genai-perf, guidellm."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from itertools import pairwise
from typing import Any

from stallwise.errors import UnreadableInput
from stallwise.evidence.artifact import Artifact
from stallwise.evidence.catalog import quantities, serving
from stallwise.evidence.evidence import Item
from stallwise.evidence.fact import Fact, Scope, Source
from stallwise.readers._cells import NUMBER, number_of
from stallwise.readers.shapes._plainly import plain_words

FORMAT = "serving benchmark"
CAPTURE = "vllm bench serve --save-result ..."
_BENCH = (b'"output_throughput"', b'"request_throughput"', b'"mean_ttft_ms"', b'"median_ttft_ms"')
_AIPERF = (b'"time_to_first_token"', b'"inter_token_latency"')
_TITLE = "Serving Benchmark Result"
_RULER = re.compile(r"^(?=.*={20})\W*$")  # closes a table
_ROW = re.compile(rf"^\W*([A-Z][\w /().,-]*?)(?: \(excl\. 1st token\))?:\s+({NUMBER}|inf)\s*$")
_UNIT = re.compile(r" \((?:req|tok)/s\)$")
ANNOUNCED = 8  # lines above a title
_TO_S = {"ms": 1e-3, "us": 1e-6, "ns": 1e-9}


@cache
def _keys() -> dict[str, Any]:
    """What each program calls it (bench_words.toml)."""
    return tomllib.loads(files("stallwise.readers").joinpath("bench_words.toml").read_text(encoding="utf-8"))


def recognises(name: str, head: bytes) -> bool:
    """JSON (or JSON lines) with the keys of one of them, or the title of a printed table."""
    if head.lstrip()[:1] not in (b"{", b"["):
        return _TITLE.encode() in head
    return (
        any(k in head for k in _BENCH)
        or all(k in head for k in _AIPERF)
        or (b'"benchmarks"' in head and b'"time_to_first_token_ms"' in head)
    )


def read(artifact: Artifact) -> Iterator[Item]:
    """Latencies, rates, lengths and the load, each run of a sweep scoped by its place."""
    printed = artifact.head.lstrip()[:1] not in (b"{", b"[")
    results = list(_printed(artifact.lines()) if printed else ((r, "") for r in _objects(artifact)))
    if not results:
        raise UnreadableInput(f"{artifact.name} is cut or not JSON", hint="save the result again")
    many = len(results) > 1
    for place, (result, where) in enumerate(results):
        scope = Scope(run=f"{artifact.name}#{place}") if many else Scope(run=artifact.name)
        source = Source(artifact.name, where or (f"result {place + 1}" if many else ""))
        yield from _result(result, source, scope)


def _printed(lines: list[str]) -> Iterator[tuple[dict[str, Any], str]]:
    """The tables between two rulers, under the keys of the saved result; the load is announced above the title."""
    starts = [i for i, text in enumerate(lines) if _TITLE in text and "====" in text]
    closed = 0
    for start, following in pairwise([*starts, len(lines)]):
        end = next((i for i in range(start + 1, following) if _RULER.match(lines[i])), following)
        rows = [m for line in lines[max(closed, start - ANNOUNCED) : end] if (m := _ROW.match(line))]
        words = {
            "_".join(plain_words(_UNIT.sub("", m[1]))): number for m in rows if (number := number_of(m[2])) is not None
        }
        yield {_keys()["printed"].get(key, key): value for key, value in words.items()}, f"line {start + 1}"
        closed = end


def _objects(artifact: Artifact) -> Iterator[dict[str, Any]]:
    text = artifact.text()
    try:
        whole = json.loads(text)
        entries = whole if isinstance(whole, list) else [whole]
    except (ValueError, RecursionError):
        entries = []
        for line in text.splitlines():  # bench --append-result and SGLang write one object a line
            try:
                entries.append(json.loads(line))
            except (ValueError, RecursionError):
                continue
    for entry in entries:
        if isinstance(entry, dict):
            inner = entry.get("benchmarks")
            yield from ([b for b in inner if isinstance(b, dict)] if isinstance(inner, list) else [entry])


def _result(result: dict[str, Any], source: Source, scope: Scope) -> Iterator[Fact]:
    known = quantities()
    for row in _keys()["flat"]:
        value = next((v for k in row["keys"] if (v := number_of(result.get(k))) is not None), None)
        if value is not None:
            yield Fact(known[row["quantity"]], value * row["factor"], source, scope)
    rate = number_of(result.get("request_rate"))
    if rate is not None and rate != float("inf"):
        yield Fact(serving.OFFERED_RATE, rate, source, scope)
    done, duration = number_of(result.get("completed")), number_of(result.get("duration"))
    if done and duration and "request_throughput" not in result:
        yield Fact(serving.ACHIEVED_RATE, done / duration, source, scope)
    for key, quantity in (
        ("total_input_tokens", serving.PROMPT_TOKENS),
        ("total_output_tokens", serving.OUTPUT_TOKENS),
    ):
        total = number_of(result.get(key))
        if total and done:
            yield Fact(quantity, total / done, source, scope)
    model = result.get("model_id") or result.get("model")
    if isinstance(model, str):
        yield Fact(serving.MODEL, model, source, scope)
    yield from _nested(result, source, scope)
    yield from _guidellm(result, source, scope)


def _nested(result: dict[str, Any], source: Source, scope: Scope) -> Iterator[Fact]:
    """aiperf and genai-perf: each metric an object with unit, avg, p50, p99."""
    records = result.get("records") if isinstance(result.get("records"), dict) else result
    assert isinstance(records, dict)
    for key, (middle_name, tail_name) in _keys()["nested"].items():
        middle, tail = quantities()[middle_name], quantities().get(tail_name)
        entry = records.get(key)
        if not isinstance(entry, dict):
            continue
        scale = _TO_S.get(str(entry.get("unit", "")), 1.0)
        value = number_of(entry.get("p50")) or number_of(entry.get("avg"))
        if value is not None:
            yield Fact(middle, value * scale, source, scope)
        last = number_of(entry.get("p99"))
        if tail is not None and last is not None:
            yield Fact(tail, last * scale, source, scope)


def _guidellm(result: dict[str, Any], source: Source, scope: Scope) -> Iterator[Fact]:
    metrics = result.get("metrics")
    if not isinstance(metrics, dict):
        return
    for path in _keys()["offered"]:  # what the sweep asked for
        rate: Any = result
        for key in path.split("."):
            rate = rate.get(key) if isinstance(rate, dict) else None
        if (asked := number_of(rate)) is not None:
            yield Fact(serving.OFFERED_RATE, asked, source, scope)
            break
    told: set[str] = set()
    for key, (middle_name, tail_name, scale) in _keys()["successful"].items():
        middle, tail = quantities()[middle_name], quantities().get(tail_name)
        entry = metrics.get(key)
        entry = entry.get("successful", entry) if isinstance(entry, dict) else None
        if not isinstance(entry, dict):
            continue
        value = number_of(entry.get("median")) or number_of(entry.get("mean"))
        if value is None or middle_name in told:
            continue
        told.add(middle_name)
        yield Fact(middle, value * scale, source, scope)
        percentiles = entry.get("percentiles")
        last = number_of(percentiles.get("p99")) if isinstance(percentiles, dict) else None
        if tail is not None and last is not None:
            yield Fact(tail, last * scale, source, scope)
