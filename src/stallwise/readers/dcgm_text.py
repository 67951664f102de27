"""Metrics of the DCGM exporter (Prometheus text): one scrape is one sample of every GPU."""

from __future__ import annotations

import re
from collections.abc import Iterator

from stallwise.evidence.artifact import Artifact
from stallwise.evidence.catalog.hardware import GPU_XID, NVLINK_ERRORS
from stallwise.evidence.evidence import Item
from stallwise.evidence.fact import Fact, Scope, Source
from stallwise.readers._cells import whole_of
from stallwise.readers._gpu_samples import GpuSamples, gpu_words

FORMAT = "DCGM exporter"
CAPTURE = "curl -s http://NODE:9400/metrics > dcgm.txt"

LINK_ERRORS = re.compile(r"DCGM_FI_DEV_NVLINK_\w*(?:CRC|REPLAY|RECOVERY)\w*(?:COUNT|ERROR)\w*")
SAMPLE = re.compile(r"^(DCGM_FI_\w+)\{([^}]*)\}\s+(\S+)(?:\s+(\d+))?")
LABEL = re.compile(r'(?<!\w)(\w+)="((?:[^"\\]|\\.)*)"')


def recognises(name: str, head: bytes) -> bool:
    """Any DCGM field with labels."""
    return re.search(rb"^DCGM_FI_\w+\{", head, re.MULTILINE) is not None


def read(artifact: Artifact) -> Iterator[Item]:
    """One sample per GPU; a file with several scrapes gives several, told apart by a repeated field."""
    samples = GpuSamples(artifact.name)
    rows: dict[tuple[str | None, int], dict[str, float]] = {}
    names: dict[tuple[str | None, int], str] = {}
    first_line: dict[tuple[str | None, int], int] = {}
    scrape = 0.0
    for line_number, line in enumerate(artifact.lines(), 1):
        match = SAMPLE.match(line)
        if not match:
            continue
        labels = dict(LABEL.findall(match[2]))
        card = whole_of(labels.get("gpu", ""))
        if card is None:
            continue
        try:
            value = float(match[3])
        except ValueError:
            continue
        key = labels.get("Hostname") or labels.get("hostname") or labels.get("instance"), card
        source = Source(artifact.name, f"line {line_number}")
        scope = Scope(gpu=key[1], node=key[0])
        if match[1] == "DCGM_FI_DEV_XID_ERRORS" and value > 0:
            yield Fact(GPU_XID, value, source, scope, note="reported by DCGM")
        elif LINK_ERRORS.match(match[1]) and value > 0:
            yield Fact(NVLINK_ERRORS, value, source, scope, note=match[1])
        elif match[1] in gpu_words()["dcgm"]:
            column, scale = gpu_words()["dcgm"][match[1]]
            if column in rows.get(key, {}):
                _flush(rows, names, first_line, samples, scrape)
                scrape += 1.0
            row = rows.setdefault(key, {})
            row[column] = value * scale
            first_line.setdefault(key, line_number)
            names[key] = labels.get("modelName", names.get(key, ""))
    _flush(rows, names, first_line, samples, scrape)
    yield from samples.items()


def _flush(
    rows: dict[tuple[str | None, int], dict[str, float]],
    names: dict[tuple[str | None, int], str],
    first_line: dict[tuple[str | None, int], int],
    samples: GpuSamples,
    scrape: float,
) -> None:
    for (node, gpu), values in rows.items():
        if "utilisation_share" not in values and "engine_active_share" in values:
            values["utilisation_share"] = values["engine_active_share"]
        values["time_s"] = scrape
        samples.add(gpu, values, first_line[node, gpu], name=names.get((node, gpu), ""), node=node)
    rows.clear()
    first_line.clear()
