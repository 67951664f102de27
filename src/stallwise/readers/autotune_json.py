"""A sweep over kernel configurations as JSON, with the time of the library path beside it."""

from __future__ import annotations

from collections.abc import Iterator

from stallwise.errors import UnreadableInput
from stallwise.evidence.artifact import Artifact
from stallwise.evidence.evidence import Item
from stallwise.evidence.fact import Source
from stallwise.readers.autotune_log import MAX_BYTES, is_sweep, sweep
from stallwise.readers.shapes.tree import tree_of

FORMAT = "autotune sweep"
EXCLUSIVE = True


def recognises(name: str, head: bytes) -> bool:
    """JSON with configuration axes as keys."""
    return is_sweep(head)


def read(artifact: Artifact) -> Iterator[Item]:
    """One table of configurations."""
    found = list(sweep(tree_of(artifact.name, artifact.text(MAX_BYTES)), Source(artifact.name)))
    if not found:
        raise UnreadableInput(f"{artifact.name} lists no configuration", hint='rows like {"BLOCK_M": 64, "ms": 0.4}')
    yield from found
