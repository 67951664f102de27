"""A kernel's profiler summary pasted into a text file."""

from __future__ import annotations

from collections.abc import Iterator

from stallwise.evidence.artifact import Artifact
from stallwise.evidence.evidence import Item
from stallwise.evidence.fact import STATED
from stallwise.readers._kernel_summary import MANY, found_in, summary_facts

FORMAT = "pasted kernel summary"
MAX_BYTES = 1 << 16  # people paste a screen, not a report


def recognises(name: str, head: bytes) -> bool:
    """Short text with several of the known labels and none of the tools' own headers."""
    if len(head) > MAX_BYTES or b"\x00" in head or b'"Metric Name"' in head or b"==PROF==" in head or b"=" in head[:1]:
        return False
    if name.endswith(".toml"):
        return False
    return len(list(found_in(head.decode("utf-8", "replace")))) >= MANY


def read(artifact: Artifact) -> Iterator[Item]:
    """Facts as the user states them."""
    yield from summary_facts(artifact.text(), STATED)
