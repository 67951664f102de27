"""Metrics of the DCGM exporter (Prometheus text): one scrape is one sample of every GPU."""

from __future__ import annotations

import re
from collections.abc import Iterator

from stallwise.evidence.artifact import Artifact
from stallwise.evidence.catalog.hardware import GPU_XID, NVLINK_ERRORS
from stallwise.evidence.evidence import Item
from stallwise.evidence.fact import Fact, Scope, Source
from stallwise.readers._cells import number_of, whole_of
from stallwise.readers._gpu_samples import GpuSamples, gpu_words
from stallwise.readers._patterns import patterns

FORMAT = "DCGM exporter"
CAPTURE = "curl -s http://NODE:9400/metrics > dcgm.txt"
_P = patterns("dcgm")


def recognises(name: str, head: bytes) -> bool:
    """Any DCGM field with labels."""
    return re.search(rb"^DCGM_FI_\w+\{", head, re.MULTILINE) is not None


def read(artifact: Artifact) -> Iterator[Item]:
    """One sample per GPU; a file with several scrapes gives several, told apart by a repeated field."""
    samples = GpuSamples(artifact.name)
    cards: dict[tuple[str | None, int], dict[str, float]] = {}
    scrape = 0.0
    for number, line in enumerate(artifact.lines(), 1):
        match = _P["sample"].match(line)
        labels = dict(_P["label"].findall(match[2])) if match else {}
        card, value = whole_of(labels.get("gpu", "")), number_of(match[3] if match else None)
        if match is None or card is None or value is None:
            continue
        node = labels.get("Hostname") or labels.get("hostname") or labels.get("instance")
        source, scope = Source(artifact.name, f"line {number}"), Scope(gpu=card, node=node)
        if match[1] == "DCGM_FI_DEV_XID_ERRORS" and value > 0:
            yield Fact(GPU_XID, value, source, scope, note="reported by DCGM")
        elif _P["link_errors"].match(match[1]) and value > 0:
            yield Fact(NVLINK_ERRORS, value, source, scope, note=match[1])
        elif match[1] in gpu_words()["dcgm"]:
            column, scale = gpu_words()["dcgm"][match[1]]
            if column in cards.get((node, card), {}):
                cards, scrape = {}, scrape + 1.0
            if (node, card) not in cards:
                cards[node, card] = {"time_s": scrape}
                samples.add(card, cards[node, card], number, node=node)
            if model := labels.get("modelName"):
                samples.meta[scope]["name"] = model
            cards[node, card][column] = value * scale
    for _, values in (row for rows in samples.rows.values() for row in rows):
        if "engine_active_share" in values:
            values.setdefault("utilisation_share", values["engine_active_share"])
    yield from samples.items()
