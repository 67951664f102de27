"""Metrics of the DCGM exporter (Prometheus text): one scrape is one sample of every GPU."""

from __future__ import annotations

from collections.abc import Iterator

from stallwise.evidence.artifact import Artifact
from stallwise.evidence.evidence import Item
from stallwise.evidence.fact import Note, Source
from stallwise.readers._cells import as_columns, whole_of
from stallwise.readers._gpu_samples import Card, GpuSamples, gpu_words
from stallwise.readers._patterns import patterns
from stallwise.readers.shapes.prometheus import samples_in

FORMAT = "DCGM exporter"
LABELLED = True  # labels and values: its words name what is measured, not what is wrong
CAPTURE = "curl -s http://NODE:9400/metrics > dcgm.txt"
# dcgm_fields.h: values that say "not known", as 32-bit and 64-bit integers and as a float.
BLANK = frozenset(float(n + k) for n in (2**31 - 16, 2**63 - 16, 2**47) for k in range(4))
_P = patterns("dcgm")


def recognises(name: str, head: bytes) -> bool:
    """Any DCGM field with labels."""
    return _P["page"].search(head.decode("utf-8", "replace")) is not None


def read(artifact: Artifact) -> Iterator[Item]:
    """One sample per GPU; a file with several scrapes gives several, told apart by a repeated field."""
    samples, words, scrape = GpuSamples(artifact.name), gpu_words()["dcgm"], 0.0
    rows: dict[tuple[float, Card], dict[str, float]] = {}
    lines: dict[tuple[float, Card], int] = {}
    names: dict[Card, str] = {}
    printed = [*samples_in(artifact.lines())]
    for name, _, value, line, labels in ((*sample, sample.labels) for sample in printed):
        gpu = whole_of(labels.get("gpu", ""))
        if gpu is None or value != value or value in BLANK or name not in words:
            continue
        card = gpu, labels.get("Hostname") or labels.get("hostname") or labels.get("instance")
        column, scale = words[name]
        if column in rows.get((scrape, card), ()):
            scrape += 1.0
        lines.setdefault((scrape, card), line)
        rows.setdefault((scrape, card), {"time_s": scrape})[column] = value * scale
        names[card] = labels.get("modelName") or names.get(card, "")
    broken = sum(line.strip() != "" and not line.startswith("#") for line in artifact.lines()) - len(printed)
    if broken > 0:
        yield Note(f"{broken} lines are no samples", Source(artifact.name), lost=True)
    columns = as_columns([*rows.values()])
    if "engine_active_share" in columns:
        columns.setdefault("utilisation_share", columns["engine_active_share"])
    samples.add([card for _, card in rows], columns, [*lines.values()], [names[card] for _, card in rows])
    yield from samples.items()
