"""`nvidia-smi -q -x`: everything about each GPU as XML, parsed without entities, DTDs or anything fetched."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from stallwise.errors import UnreadableInput
from stallwise.evidence.artifact import Artifact
from stallwise.evidence.evidence import Item
from stallwise.evidence.fact import Note, Source
from stallwise.readers._gpu_samples import GpuSamples, seconds
from stallwise.readers._gpu_state import add_card
from stallwise.readers.shapes.xml import parsed

FORMAT = "nvidia-smi -q -x"
CAPTURE = "nvidia-smi -q -x > q.xml"
EXCLUSIVE = True
MAX_BYTES = 64 << 20  # a thousand GPUs are a few tens of megabytes


def recognises(name: str, head: bytes) -> bool:
    """The root element nvidia-smi writes."""
    return b"<nvidia_smi_log" in head[:4096]


def read(artifact: Artifact) -> Iterator[Item]:
    """One sample per GPU."""
    with artifact.open() as stream:
        data = stream.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise UnreadableInput(f"{artifact.name} is too large for an nvidia-smi report", hint="split it by report")
    report = parsed(data.decode("utf-8", "replace"))
    if report is None:
        raise UnreadableInput(
            f"{artifact.name} declares XML entities", hint="nvidia-smi writes none; do not trust this file"
        )
    log = report.get("nvidia_smi_log")
    gpus = log.get("gpu", []) if isinstance(log, dict) else []
    samples = GpuSamples(artifact.name)
    whole = data.count(b"</gpu>")  # a card that the file ends in is left out
    for index, gpu in enumerate((gpus if isinstance(gpus, list) else [gpus])[:whole]):
        if isinstance(gpu, dict):
            add_card(samples, index, str(gpu.get("id", "")), 1, seconds(str(log.get("timestamp", ""))), _told(gpu, ""))
    yield from samples.items()
    if b"</nvidia_smi_log>" not in data:
        if not samples.rows:
            raise UnreadableInput(f"{artifact.name} is damaged XML", hint="run nvidia-smi -q -x again")
        yield Note("cut off or damaged", Source(artifact.name))


def _told(tree: dict[str, Any], path: str) -> Iterator[tuple[str, str]]:
    for key, value in tree.items():
        for one in value if isinstance(value, list) else [value]:
            if isinstance(one, dict):
                yield from _told(one, f"{path}{key}/")
            elif one:
                yield f"{path}{key}", str(one)
