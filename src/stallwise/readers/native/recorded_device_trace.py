"""The recorder's device-only window: kernels as they run without a profiler on the host. Kept beside the full trace."""

from __future__ import annotations

from collections.abc import Iterator

from stallwise.evidence.artifact import Artifact
from stallwise.evidence.evidence import Item
from stallwise.readers.native.torch_trace import DEVICE_ONLY

FORMAT = "device-only trace"
EXCLUSIVE = True


def recognises(name: str, head: bytes) -> bool:
    """By the name that the recorder gives it: its bytes are those of any trace."""
    return name.endswith(DEVICE_ONLY) and b'"schemaVersion"' in head


def read(artifact: Artifact) -> Iterator[Item]:
    """Read together with the full trace by whoever replays it; by itself it names no step."""
    return iter(())
