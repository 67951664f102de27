"""What a load's author wrote down: tables of requests, sweeps of offered against achieved rate, notes in logs."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator

from stallwise.evidence.artifact import Artifact
from stallwise.evidence.catalog import serving
from stallwise.evidence.evidence import Item
from stallwise.evidence.fact import Fact, Scope, Source
from stallwise.readers._cells import NUMBER
from stallwise.readers.shapes.clock import clock_of

FORMAT = "notes on a load"
_SAME = re.compile(r"(?:identical|same|shared|common)\W+(?:\w+\W+){0,3}?([\d,]+)[- ]tokens?\b", re.IGNORECASE)
_CONCURRENCY = re.compile(r"concurrency[= ](\d+)|(?<!\d)(\d+) concurrent requests", re.IGNORECASE)
_INPUT = re.compile(r"input_len[= ](\d+)|(?<![\d,])([\d,]+)-token prompts?", re.IGNORECASE)
_TPOT = re.compile(rf"(?:mean|median) TPOT \(ms\)\s*[:=]\s*({NUMBER})", re.IGNORECASE)
_TTFT = re.compile(rf"(?:mean|median) TTFT \(ms\)\s*[:=]\s*({NUMBER})", re.IGNORECASE)
_PLATEAU_GROWTH = 1.05  # more load that raises the rate by less than this has hit something
_OFFERED = ("offered_rps", "offered_qps", "request_rate", "offered_rate", "target_rps", "qps_offered")
_ACHIEVED = ("achieved_rps", "achieved_qps", "request_throughput", "achieved_rate", "rps", "throughput_rps")
_BUSY = ("gpu_util_pct", "gpu_util", "gpu_utilization_pct", "gpu_utilisation_pct", "sm_util_pct")


def recognises(name: str, head: bytes) -> bool:
    """A CSV of requests or of a sweep, or a client's or benchmark's note."""
    text = head[:262144].decode("utf-8", "replace")
    columns = _columns(text)
    if columns & set(_OFFERED) and columns & set(_ACHIEVED):
        return True
    if "prompt_tokens" in columns or any(c.startswith("shared") and c.endswith("tokens") for c in columns):
        return True
    return bool(
        re.search(r"^(?:client|bench|load)\b.*[:=]", text, re.MULTILINE | re.IGNORECASE)
        and (_CONCURRENCY.search(text) or _SAME.search(text))
    )


def read(artifact: Artifact) -> Iterator[Item]:
    """Facts of the load."""
    columns = _columns(artifact.text(65536))
    if columns & set(_OFFERED) and columns & set(_ACHIEVED):
        yield from _sweep(artifact)
    elif columns & {"prompt_tokens"} or any(c.startswith("shared") for c in columns):
        yield from _requests(artifact)
    else:
        yield from _notes(artifact)


def _columns(text: str) -> set[str]:
    first = text.lstrip("\ufeff").split("\n", 1)[0].strip()
    return {c.strip().strip('"').lower() for c in first.split(",")} if "," in first and len(first) < 2000 else set()


def _rows(artifact: Artifact) -> list[dict[str, str]]:
    lines = [line for line in artifact.lines() if line.strip()]
    try:
        return [{str(k).strip().lower(): v or "" for k, v in row.items()} for row in csv.DictReader(lines)]
    except csv.Error:
        return []


def _value(row: dict[str, str], names: tuple[str, ...]) -> float | None:
    for name in names:
        try:
            return float(row[name])
        except (KeyError, ValueError, TypeError):
            continue
    return None


def _sweep(artifact: Artifact) -> Iterator[Item]:
    """The rate that more load no longer raises, and how busy the GPU is there."""
    found = [
        (o, a, _value(r, _BUSY)) for r in _rows(artifact) if (o := _value(r, _OFFERED)) and (a := _value(r, _ACHIEVED))
    ]
    found.sort(key=lambda x: x[0])
    source = Source(artifact.name)
    for before, after in zip(found, found[1:], strict=False):
        if after[0] > before[0] and after[1] < _PLATEAU_GROWTH * before[1] and after[1] < after[0] / _PLATEAU_GROWTH:
            yield Fact(serving.PLATEAU_RATE, after[1], source)
            yield Fact(serving.OFFERED_RATE, found[-1][0], source)
            yield Fact(serving.ACHIEVED_RATE, found[-1][1], source)
            if after[2] is not None:
                yield Fact(serving.PLATEAU_GPU_BUSY, after[2] / 100, source)
            return


def _requests(artifact: Artifact) -> Iterator[Item]:
    rows = _rows(artifact)
    source = Source(artifact.name)
    prompts = [v for r in rows if (v := _value(r, ("prompt_tokens", "input_tokens", "input_len"))) is not None]
    if prompts:
        yield Fact(serving.PROMPT_TOKENS, sum(prompts) / len(prompts), source, samples=len(prompts))
    names = tuple(c for c in (rows[0] if rows else {}) if c.startswith(("shared", "common")) and "token" in c)
    shared = [v for r in rows if (v := _value(r, names)) is not None] if names else []
    if shared:
        yield Fact(serving.SHARED_PREFIX, min(shared), source, samples=len(shared))


def _notes(artifact: Artifact) -> Iterator[Item]:
    scope = Scope(run=artifact.name)
    for number, text in enumerate(artifact.lines(), 1):
        source = Source(artifact.name, f"line {number}")
        if match := _TPOT.search(text):
            yield Fact(serving.TPOT, float(match[1]) / 1000, source, scope)
        if match := _TTFT.search(text):
            yield Fact(serving.TTFT, float(match[1]) / 1000, source, scope)
        if not re.match(r"\W*(?:client|bench|load)\b", text, re.IGNORECASE) and clock_of(text) is None:
            continue
        if match := _SAME.search(text):
            yield Fact(serving.SHARED_PREFIX, float(match[1].replace(",", "")), source)
        if match := _CONCURRENCY.search(text):
            yield Fact(serving.CONCURRENCY, float(match[1] or match[2]), source, scope)
        if match := _INPUT.search(text):
            yield Fact(serving.PROMPT_TOKENS, float((match[1] or match[2]).replace(",", "")), source)
