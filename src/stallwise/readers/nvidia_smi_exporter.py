"""Metrics of exporters that print nvidia-smi's own query fields (nvidia_gpu_exporter): one page is one sample of every GPU.

The HELP line of a metric holds the field as nvidia-smi calls it; its value is in base units, which the metric's last word names.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from stallwise.evidence.artifact import Artifact
from stallwise.evidence.evidence import Item
from stallwise.readers._gpu_samples import GpuSamples
from stallwise.readers.nvidia_smi_csv import take
from stallwise.readers.shapes.prometheus import samples_in

FORMAT = "nvidia-smi exporter"
LABELLED = True  # labels and values: its words name what is measured, not what is wrong
CAPTURE = "curl -s http://NODE:9835/metrics > smi_metrics.txt"

PREFIX = "nvidia_smi_"
# The unit that nvidia-smi prints, and how many base units it is.
UNITS = {"hz": ("MHz", 1e6), "bytes": ("MiB", float(1 << 20)), "watts": ("W", 1.0), "ratio": ("%", 0.01)}
FLAGS = ("clocks_event_reasons.", "clocks_throttle_reasons.")  # a 1 is "Active"
WHOLE = ("index", "pci.bus_id", "name")
_FIELD = re.compile(r"^# HELP (nvidia_smi_\w{1,100}) ([a-z][\w.]{2,80})(?: \[[\w%]{1,10}\])?\s*$")
LEAST = 5  # fields that make a page


def recognises(name: str, head: bytes) -> bool:
    """HELP lines with several of nvidia-smi's field names."""
    return head[:65536].count(b"# HELP nvidia_smi_") >= LEAST


def read(artifact: Artifact) -> Iterator[Item]:
    """The page as the rows that nvidia-smi would have printed."""
    lines = artifact.lines()
    fields = {m[1]: m[2] for line in lines if (m := _FIELD.match(line))}
    cards: dict[str, dict[str, str]] = {}
    places: dict[str, int] = {}
    titles: dict[str, str] = {}
    for sample in samples_in(lines):
        uuid = sample.labels.get("uuid")
        if uuid is None or not sample.name.startswith(PREFIX):
            continue
        card = cards.setdefault(uuid, {})
        places.setdefault(uuid, sample.line)
        if sample.name == f"{PREFIX}gpu_info":
            card.update(uuid=uuid, **{k: v for k, v in sample.labels.items() if k in WHOLE})
        if (field := fields.get(sample.name)) and field not in WHOLE and len(sample.labels) == 1:
            unit, scale = UNITS.get(sample.name.rpartition("_")[2], ("", 1.0))
            titles[field] = unit
            flag = field.startswith(FLAGS) and field.rpartition(".")[2] not in ("active", "supported")
            card[field] = ("Active" if sample.value else "Not Active") if flag else f"{sample.value / scale:g}"
    header = [("uuid", ""), ("name", ""), *titles.items()]
    rows = [[card.get(title, uuid if title == "uuid" else "") for title, _ in header] for uuid, card in cards.items()]
    samples = GpuSamples(artifact.name)
    if rows:
        take(header, list(zip(*rows, strict=True)), {}, samples, list(places.values()))
    yield from samples.items()
