"""trials.json of `stallwise try`: what was changed in a running job and what each change was worth."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from stallwise.errors import UnreadableInput
from stallwise.evidence.artifact import Artifact
from stallwise.evidence.evidence import Item
from stallwise.evidence.fact import Source, Table

FORMAT = "stallwise trials"
EXCLUSIVE = True
FIRST = re.compile(rb'^\s*\{\s*"schema":\s*"stallwise\.trials/1"')


def recognises(name: str, head: bytes) -> bool:
    """Our own first words."""
    return FIRST.match(head) is not None


def read(artifact: Artifact) -> Iterator[Item]:
    """One table, its rows as they are."""
    try:
        found = json.loads("\n".join(str(line) for line in artifact.lines()))
    except (ValueError, RecursionError) as error:
        raise UnreadableInput(f"{artifact.name} is damaged", hint="try again: stallwise try -- COMMAND") from error
    if isinstance(found, dict):
        yield Table("trials", {}, Source(artifact.name), meta=found)
