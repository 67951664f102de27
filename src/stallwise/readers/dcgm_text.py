"""Metrics of the DCGM exporter (Prometheus text): one scrape is one sample of every GPU."""

from __future__ import annotations

from collections.abc import Iterator

from stallwise.evidence.artifact import Artifact
from stallwise.evidence.evidence import Item
from stallwise.evidence.fact import Scope
from stallwise.readers._cells import whole_of
from stallwise.readers._gpu_samples import GpuSamples, gpu_words
from stallwise.readers._patterns import patterns
from stallwise.readers.shapes.prometheus import samples_in

FORMAT = "DCGM exporter"
CAPTURE = "curl -s http://NODE:9400/metrics > dcgm.txt"
_P = patterns("dcgm")


def recognises(name: str, head: bytes) -> bool:
    """Any DCGM field with labels."""
    return _P["page"].search(head.decode("utf-8", "replace")) is not None


def read(artifact: Artifact) -> Iterator[Item]:
    """One sample per GPU; a file with several scrapes gives several, told apart by a repeated field."""
    samples = GpuSamples(artifact.name)
    cards: dict[tuple[str | None, int], dict[str, float]] = {}
    words, scrape = gpu_words()["dcgm"], 0.0
    for name, _, value, number, labels in ((*sample, sample.labels) for sample in samples_in(artifact.lines())):
        card = whole_of(labels.get("gpu", ""))
        if card is None or value != value:
            continue
        node = labels.get("Hostname") or labels.get("hostname") or labels.get("instance")
        if name in words:
            column, scale = words[name]
            if column in cards.get((node, card), {}):
                cards, scrape = {}, scrape + 1.0
            if (node, card) not in cards:
                cards[node, card] = {"time_s": scrape}
                samples.add(card, cards[node, card], number, node=node)
            if model := labels.get("modelName"):
                samples.meta[Scope(gpu=card, node=node)]["name"] = model
            cards[node, card][column] = value * scale
    for _, values in (row for rows in samples.rows.values() for row in rows):
        if "engine_active_share" in values:
            values.setdefault("utilisation_share", values["engine_active_share"])
    yield from samples.items()
