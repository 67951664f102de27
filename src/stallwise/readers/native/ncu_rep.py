"""Nsight Compute's own .ncu-rep files, through the optional package `ncu-report`."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from stallwise.errors import MissingExtra, UnreadableInput
from stallwise.evidence.artifact import Artifact
from stallwise.evidence.evidence import Item
from stallwise.evidence.fact import Note, Source
from stallwise.readers.native._ncu import Launch, facts_of
from stallwise.readers.native._wire import fields_of

FORMAT = "Nsight Compute report"
CAPTURE = "ncu --set full -o report python script.py"
EXCLUSIVE = True
MAGIC = b"NVR\x00"
PAYLOAD_FIELD = 5


def recognises(name: str, head: bytes) -> bool:
    """The report's magic number."""
    return head.startswith(MAGIC)


def read(artifact: Artifact) -> Iterator[Item]:
    """Facts per kernel. The package reads a cut file without complaint, so its blocks are walked first."""
    try:
        import ncu_report  # type: ignore[import-not-found,import-untyped,unused-ignore]
    except ImportError:
        raise MissingExtra("ncu-report", "ncu") from None
    with artifact.open() as stream:
        data = stream.read()
    lost = missing_bytes(data)
    source = Source(artifact.name)
    if lost:
        yield Note(f"the report is cut: at least {lost} bytes are missing at its end", source)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "report.ncu-rep"
        path.write_bytes(data)
        try:
            context = ncu_report.load_report(str(path))
            launches = list(_launches(context))
        except Exception as error:  # the package raises what its C++ raises
            raise UnreadableInput(
                f"{artifact.name} is damaged: {error}", hint="profile again, or export with ncu --csv"
            ) from error
    if not launches:
        raise UnreadableInput(f"{artifact.name} holds no kernel" + (", it is cut" if lost else ""),
                              hint="profile again and let ncu finish")  # fmt: skip
    yield from facts_of(launches, source)


def missing_bytes(data: bytes) -> int:
    """How many bytes a cut report lacks: after the magic come blocks, each with its length before it."""
    at = len(MAGIC)
    while at + 4 <= len(data):
        size = int.from_bytes(data[at : at + 4], "little")
        at += 4 + size
        at += _payload_bytes(data[at - size : at])
    return max(0, at - len(data))


def _payload_bytes(header: bytes) -> int:
    """The block header is a protobuf message one of whose fields is the size of what follows."""
    with suppress(ValueError, IndexError):  # a cut header
        return next((v for field, _, v in fields_of(header) if field == PAYLOAD_FIELD and isinstance(v, int)), 0)
    return 0


def _launches(context: Any) -> Iterator[Launch]:
    for range_index in range(context.num_ranges()):
        section = context.range_by_idx(range_index)
        for index in range(section.num_actions()):
            action = section.action_by_idx(index)
            launch = Launch(action.name(), f"kernel {index}")
            for name in action.metric_names():
                metric = action.metric_by_name(name)
                value = metric.value() if metric is not None else None
                if value is not None:
                    launch.metrics[name] = (str(value), metric.unit() or "")
            launch.grid = launch.metrics.get("launch__grid_size", ("", ""))[0]
            launch.block = launch.metrics.get("launch__block_size", ("", ""))[0]
            launch.device = launch.metrics.get("device__attribute_display_name", ("", ""))[0]
            launch.capability = ".".join(
                launch.metrics.get(f"device__attribute_compute_capability_{part}", ("?", ""))[0]
                for part in ("major", "minor")
            )
            yield launch
