"""trials.json of `stallwise try`: what was changed in a running job and what each change was worth."""

from __future__ import annotations

import re
from collections.abc import Iterator

from stallwise.evidence.artifact import Artifact
from stallwise.evidence.evidence import Item
from stallwise.evidence.fact import Source, Table
from stallwise.readers._cells import json_of

FORMAT = "stallwise trials"
EXCLUSIVE = True
FIRST = re.compile(rb'^\s*\{\s*"schema":\s*"stallwise\.trials/1"')


def recognises(name: str, head: bytes) -> bool:
    """Our own first words."""
    return FIRST.match(head) is not None


def read(artifact: Artifact) -> Iterator[Item]:
    """One table, its rows as they are."""
    found = json_of(artifact.text(), artifact.name, "try again: stallwise try -- COMMAND")
    if isinstance(found, dict):
        yield Table("trials", {}, Source(artifact.name), meta=found)
